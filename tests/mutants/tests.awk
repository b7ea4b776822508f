# Of `ctest --show-only=json-v1` a line for each test: its name, its labels with commas, its folder, its environment and command.
/"command" :/ && at_tests { part = "command" }
/"tests" :/ { at_tests = 1 }
at_tests {
    text = $0
    sub(/^ */, "", text)
    sub(/,$/, "", text)
    if (text ~ /^"name" : /) {
        gsub(/^"name" : "|"$/, "", text)
        if (text ~ /^(ENVIRONMENT|LABELS|WORKING_DIRECTORY|SKIP_RETURN_CODE|TIMEOUT|COST|RUN_SERIAL|RESOURCE_LOCK|DEPENDS|DISABLED)$/) part = text
        else name = text
    } else if (text ~ /^"value" : "/ && part == "WORKING_DIRECTORY") {
        gsub(/^"value" : "|"$/, "", text)
        print name, labels, text, environment, command
        environment = command = labels = part = ""
    } else if (text ~ /^"[^"]*"$/) {
        gsub(/^"|"$/, "", text)
        if (part == "command") command = command " " text
        else if (part == "ENVIRONMENT") environment = environment " " text
        else if (part == "LABELS") labels = labels (labels == "" ? "" : ",") text
    }
}
