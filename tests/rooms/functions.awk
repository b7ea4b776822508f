# functions.awk - who declares, defines and calls each function of the sources.
#
# In:  C files; order: a file with the list of folders.   Out: a line for each function that stands in no order.
# The one idea: a function is declared by a header of the folder that defines it, and called from there or from a later one.
# What runtime/vwn.h declares is for all that come behind that header. Files of the folders `trees` call in no circle.
function folder(path) { return match(path, /\/[^\/]*$/) ? substr(path, 1, RSTART - 1) : "" }
function place(path) { return path in at ? at[path] : folder(path) in at ? at[folder(path)] : 0 }

# A line without comments and texts.
function code(s,    i, j, rest) {
    gsub(/'(\\.|[^'\\])'/, "0", s)
    gsub(/"(\\.|[^"\\])*"/, "0", s)
    for (;;) {
        if (comment) {
            if (!(i = index(s, "*/")))
                return ""
            s = substr(s, i + 2)
            comment = 0
        }
        if (!(i = index(s, "/*")))
            return s
        comment = 1
        rest = substr(s, i + 2)
        j = index(rest, "*/")
        if (!j)
            return substr(s, 1, i - 1)
        s = substr(s, 1, i - 1) " " substr(rest, j + 2)
        comment = 0
    }
}

# A declaration or the head of a definition, up to its `;` or `{`.
function finish(    name, own) {
    own = head ~ /^static|[ )]static /
    gsub(/__attribute__ *\(\([^()]*(\([^()]*\))?[^()]*\)\)/, "", head)
    if (head ~ /^[A-Z][A-Za-z]* [a-z_]+;/) { # by the name of its type
        name = head
        sub(/^[^ ]* /, "", name)
        sub(/;.*/, "", name)
        declared[name] = declared[name] " " FILENAME
    } else if (head !~ /^(typedef|extern|enum|union|struct [A-Za-z]* *\{)|=.*\(/ && match(head, /[A-Za-z_][A-Za-z0-9_]* *\(/) && RSTART > 1) {
        name = substr(head, RSTART, RLENGTH - 1)
        sub(/ *$/, "", name)
        if (name ~ /^[A-Z_0-9]*$/) # a macro
            ;
        else if (own)
            mine[FILENAME, name] = 1
        else if (head ~ /\{/)
            defined[name] = defined[name] " " FILENAME
        else if (FILENAME ~ /\.h$/)
            declared[name] = declared[name] " " FILENAME
        else
            print FILENAME " declares " name "(), which a header should"
    }
    head = ""
}

# The first of some files in whose folder `path` lies; "": none.
function beside(path, files,    n, f, i) {
    n = split(files, f, " ")
    for (i = 1; i <= n; i++)
        if (folder(f[i]) == folder(path))
            return f[i]
    return ""
}

# Can `path` call what these files define?
function reaches(path, files,    n, f, i) {
    n = split(files, f, " ")
    for (i = 1; i <= n; i++)
        if (place(f[i]) <= place(path))
            return 1
    return 0
}

BEGIN { while ((getline line < order) > 0) at[line] = ++places }
FNR == 1 { comment = gone = 0; head = "" }
{
    s = code($0)
    if (s ~ /^ *#/ || gone) {
        gone = $0 ~ /\\$/
        next
    }
    begins = head == "" && s ~ /^[A-Za-z_]/ && s !~ /^[A-Za-z_]+:/
    if (begins || head != "") {
        head = begins ? s : head " " s
        if (s ~ /[;{]/)
            finish()
        if (s !~ /\{.*[a-z]/)
            next
    }
    while (match(s, /(^|[^A-Za-z0-9_.>])[a-z_][A-Za-z0-9_]*\(/)) {
        name = substr(s, RSTART, RLENGTH - 1)
        sub(/^[^a-z_]/, "", name)
        called[FILENAME, name] = 1
        s = substr(s, RSTART + RLENGTH)
    }
}
END {
    for (name in defined) {
        n += 1
        if (!(name in declared) && name != "main" && name !~ /^(shape|grad|eval)_[A-Z]/) # rules of ops.def: op.h declares all
            print substr(defined[name], 2) " defines " name "(), which no header declares"
        k = split(declared[name], h, " ")
        for (i = 1; i <= k; i++)
            if (!beside(h[i], defined[name]))
                print h[i] " declares " name "() of" defined[name]
    }
    for (key in called) {
        split(key, c, SUBSEP)
        if (c[2] in defined && !(key in mine) && declared[c[2]] != " runtime/vwn.h" && !reaches(c[1], defined[c[2]]))
            print c[1] " calls " c[2] "() of" defined[c[2]] ", which comes later"
    }
    # Files of a folder of `trees` that call each other, by whatever way.
    for (key in called) {
        split(key, c, SUBSEP)
        to = c[2] in defined && !(key in mine) && index(" " trees " ", " " folder(c[1]) " ") ? beside(c[1], defined[c[2]]) : ""
        if (to != "" && to != c[1]) {
            calls[c[1], to] = 1
            file[c[1]] = file[to] = 1
        }
    }
    for (by in file)
        for (from in file)
            for (to in file)
                if ((from, by) in calls && (by, to) in calls)
                    calls[from, to] = 1
    for (from in file)
        for (to in file)
            if (from < to && (from, to) in calls && (to, from) in calls)
                print from " and " to " call each other"
    if (least && n < least)
        print "only " n + 0 " functions were found"
}
