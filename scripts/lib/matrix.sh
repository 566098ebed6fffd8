# shellcheck shell=bash
# A table of what clients of each era can do with the servers behind Shoal, as the interop programs reported it.

# Each row: SERVER|TRANSPORT|CLIENT|ERA|LOG|WHY, where WHY tells why checks that it lacks were not run.
MATRIX=()

# in_matrix NAME SERVER TRANSPORT CLIENT ERA [WHY]: the check NAME is a row of the table
in_matrix() {
    MATRIX+=("$2|$3|$4|$5|$(log_of "$1")|${6:-}")
}

# print_matrix: the table, if it has rows, which are then gone; a number in a cell is that of a reason below
print_matrix() {
    [[ ${#MATRIX[@]} -gt 0 ]] || return 0
    heading "what works with which server"
    printf '%s\n' "${MATRIX[@]}" | awk -F '|' '
        function reason(text) {
            if (!(text in numbers)) {
                numbers[text] = ++reasons
                told[reasons] = text
            }
            return "(" numbers[text] ")"
        }
        {
            row[NR] = "| " $1 " | " $2 " | " $3 " | " $4 " |"
            why[NR] = $6
            while ((getline line < $5) > 0) {
                if (line !~ /^(ok|FAIL|skip) /) continue
                verdict = line
                sub(/ .*/, "", verdict)
                name = substr(line, length(verdict) + 2)
                more = name
                sub(/:.*/, "", name)
                sub(/[ (].*/, "", name)
                if (!sub(/^[^:]*: /, "", more)) more = ""
                if (!(name in columns)) {
                    columns[name] = ++count
                    names[count] = name
                }
                cell[NR, name] = verdict == "skip" ? reason(more) : verdict
            }
            close($5)
        }
        END {
            head = "| server | over | client | era |"
            rule = "|---|---|---|---|"
            for (at = 1; at <= count; at++) {
                head = head " " names[at] " |"
                rule = rule "---|"
            }
            print head
            print rule
            for (at = 1; at <= NR; at++) {
                for (column = 1; column <= count; column++) {
                    text = cell[at, names[column]]
                    if (text == "") text = why[at] == "" ? "–" : reason(why[at])
                    row[at] = row[at] " " text " |"
                }
                print row[at]
            }
            for (at = 1; at <= reasons; at++) print "(" at ") " told[at]
        }'
    MATRIX=()
}
