# shellcheck shell=sh
# setup.sh - what tests/run.sh and the scripts of examples/ need; to be sourced in the root of the sources.
#
# In:  a Debian 12 with nothing on it, or a machine on which all is there already.
# Out: functions install_packages, make_text, build_vwn and example_folder, each of which does nothing the second time. The
#      current folder has a name that CMake and make can take.

say() { printf '\n== %s\n' "$*"; }

# One sentence, and the status of what is missing on a machine.
stop() {
    echo "$*" >&2
    exit 5
}

# The folder `build` and one in it, or an end: the sources may lie where nobody writes.
build_folder() {
    if ! mkdir -p "$1" 2> /dev/null || ! [ -w "$1" ]; then
        stop "$PWD/$1 cannot be written: copy the sources to a folder that can be."
    fi
}

# CMake and make read `;`, `$`, quotes and the like in a path as something else: such a folder goes by another name, a
# link in a new folder that nobody else can write. It stays, and build/plain_name says where it is.
plain_name() {
    case $PWD in
    *[!A-Za-z0-9/._+,@~-]*) ;;
    *) return 0 ;;
    esac
    build_folder build
    place=$(cat build/plain_name 2> /dev/null || true)
    # Another user may have put a folder of his own where ours was.
    if [ -z "$place" ] || [ -L "$place" ] || ! [ -O "$place" ] || [ "$(readlink "$place/vwn")" != "$PWD" ]; then
        if ! { place=$(mktemp -d /tmp/vwn-XXXXXX) && ln -s "$PWD" "$place/vwn" && echo "$place" > build/plain_name; }; then
            stop "There can be no link in /tmp as another name of $PWD: copy the sources to a folder with a plain name."
        fi
    fi
    cd "$place/vwn" || exit 5
}
plain_name

jobs=$(nproc 2> /dev/null || echo 2)

# Installs those of the named Debian packages that are missing.
install_packages() {
    command -v dpkg-query > /dev/null || {
        echo "This is no Debian: make sure of flex, bison, cmake 3.25, gcc, make, oneDNN, PCRE2, utf8proc, zlib, libzstd, libmicrohttpd." >&2
        return 0
    }
    missing=
    for package in "$@"; do
        state=$(dpkg-query -W -f '${Status}' "$package" 2> /dev/null) || state=unknown
        [ "$state" = "install ok installed" ] || missing="$missing $package"
    done
    [ -n "$missing" ] || return 0
    say "Installing$missing"
    as_root=
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo > /dev/null ||
            stop "There is neither root nor sudo to install$missing: install them, then run this again."
        as_root=sudo
    fi
    # A list of packages that cannot be fetched may still be there from before.
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q || true
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing ||
        stop "The packages could not be installed (no network?): install$missing, then run this again."
}

# The King James Bible, one verse a line, from Debian's package: build/data/kjv.txt.
make_text() {
    text=build/data/kjv.txt
    size=4404412
    build_folder build/data
    [ -f $text ] && [ "$(wc -c < $text)" -eq $size ] && return 0
    say "Writing $text"
    bible -f gen1:1-rev22:21 > $text.part || stop "\`bible\` of the package bible-kjv has failed: see above."
    [ "$(wc -c < $text.part)" -eq $size ] ||
        stop "The text has $(wc -c < $text.part) bytes instead of $size: another edition of the package bible-kjv-text?"
    mv $text.part $text
}

# example_folder FOLDER FILE...: the current folder becomes FOLDER, with these files of examples/ and the text; $VWN is a program. One
# that is built already may be named in the environment: VWN, and in FOLDER a folder that has kjv.txt.
example_folder() {
    [ -n "${VWN:-}" ] || {
        FOLDER=$1
        install_packages flex bison cmake gcc g++ make libc6-dev libdnnl2 bible-kjv bible-kjv-text
        build_folder "$FOLDER"
        make_text
        build_vwn build Release
        VWN="$PWD/build/vwn"
        cp build/data/kjv.txt "$FOLDER/"
    }
    shift
    for file in "$@"; do
        cp "examples/$file" "$FOLDER/"
    done
    cd "$FOLDER" || exit 5
}

# build_vwn FOLDER TYPE [cmake options]
build_vwn() {
    folder=$1
    type=$2
    log=$folder/build.log
    shift 2
    build_folder "$folder"
    say "Building $type in $folder"
    : 2> /dev/null > "$log" || stop "$PWD/$log cannot be written."
    if cmake -S "$PWD" -B "$PWD/$folder" -DCMAKE_BUILD_TYPE="$type" "$@" >> "$log" 2>&1 &&
        cmake --build "$folder" -j "$jobs" >> "$log" 2>&1; then
        return 0
    fi
    tail -n 60 "$log" >&2
    echo "The build failed; all of it is in $log." >&2
    exit 1
}
