# setup.sh - what tests/run.sh and examples/quickstart.sh need; to be sourced in the root of the sources.
#
# In:  a Debian 12 with nothing on it, or a machine on which all is there already.
# Out: functions install_packages, make_text and build_vwn, each of which does nothing the second time.

say() { printf '\n== %s\n' "$*"; }

jobs=$(nproc 2> /dev/null || echo 2)

# Installs those of the named Debian packages that are missing.
install_packages() {
    command -v dpkg-query > /dev/null || {
        echo "This is no Debian: make sure of flex, bison, cmake 3.25, gcc, make, oneDNN." >&2
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
        command -v sudo > /dev/null || {
            echo "Missing packages:$missing. Install them, or run this as root." >&2
            exit 1
        }
        as_root=sudo
    fi
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get update -q
    # shellcheck disable=SC2086
    $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
}

# The King James Bible, one verse a line, from Debian's package: build/data/kjv.txt.
make_text() {
    text=build/data/kjv.txt
    size=4404412
    mkdir -p build/data
    [ "$(wc -c < $text 2> /dev/null)" = "$size" ] && return 0
    say "Writing $text"
    bible -f gen1:1-rev22:21 > $text.part
    [ "$(wc -c < $text.part)" -eq $size ] || {
        echo "The text has $(wc -c < $text.part) bytes instead of $size." >&2
        exit 1
    }
    mv $text.part $text
}

# build_vwn FOLDER TYPE [cmake options]
build_vwn() {
    folder=$1
    type=$2
    log=$folder/build.log
    shift 2
    mkdir -p "$folder"
    say "Building $type in $folder"
    cmake -S . -B "$folder" -DCMAKE_BUILD_TYPE="$type" "$@" > "$log" 2>&1 &&
        cmake --build "$folder" -j "$jobs" >> "$log" 2>&1 || {
        tail -n 60 "$log" >&2
        echo "The build failed; all of it is in $log." >&2
        exit 1
    }
}
