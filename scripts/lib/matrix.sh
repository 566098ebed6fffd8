# shellcheck shell=bash
# The table of each era's clients and each kind of server behind Shoal, from the reports of the interop programs.

# The columns; a check belongs to the column with which its name begins.
MATRIX_FEATURES=(call progress cancel elicitation sampling roots subscription crash)
MATRIX_CLIENTS=(python typescript)
MATRIX_ERAS=(legacy modern)
# The required rows: SERVER|OVER.
MATRIX_SERVERS=()

# matrix_row SERVER OVER ARGUMENT…: tests every feature of the server behind URL with clients of each era; an argument that begins with
# legacy: or modern: is for one era
matrix_row() {
    local server=$1 over=$2 client era argument arguments
    shift 2
    for era in "${MATRIX_ERAS[@]}"; do
        arguments=()
        for argument in "$@"; do
            case $argument in
                legacy:* | modern:*) [[ $argument != "$era":* ]] || arguments+=(--cannot "${argument#*:}") ;;
                *) arguments+=("$argument") ;;
            esac
        done
        for client in "${MATRIX_CLIENTS[@]}"; do
            client "$(matrix_check "$server" "$over" "$client" "$era")" "$client" \
                --url "$URL" --era "$era" "${arguments[@]}"
        done
    done
}

# matrix_check SERVER OVER CLIENT ERA: the name of the check for this part of a row
matrix_check() {
    echo "matrix: $1 over $2, $3, $4"
}

# print_matrix: prints the table, and checks that no cell is empty or failed. A number in a cell refers to a reason below.
print_matrix() {
    local row era client table counts
    heading "what works with which server"
    table=$(for row in "${MATRIX_SERVERS[@]}"; do
        for era in "${MATRIX_ERAS[@]}"; do
            for client in "${MATRIX_CLIENTS[@]}"; do
                printf '%s|%s|%s\n' "$row" "$era" "$(log_of "$(matrix_check "${row%|*}" "${row#*|}" "$client" "$era")")"
            done
        done
    done | awk -F '|' -v features="${MATRIX_FEATURES[*]}" "$MATRIX_TABLE")
    counts=$(tail -n 1 <<<"$table")
    head -n -1 <<<"$table"
    if [[ $counts == *" 0 failed, 0 not tried" ]]; then
        pass "matrix: every cell" "$counts"
    else
        fail "matrix: every cell" "$counts"
    fi
}

# Each line: SERVER|OVER|ERA|LOG of one client. A cell is ok if each client found something that works and nothing that fails. It has a
# reason if the feature worked for none.
# shellcheck disable=SC2016 # it is awk's
MATRIX_TABLE='
    BEGIN { columns = split(features, names, " ") }
    {
        key = $1 " | " $2 " | " $3
        if (!(key in known)) {
            known[key] = 1
            rows[++count] = key
        }
        split("", tried)
        while ((getline line < $4) > 0) {
            if (line !~ /^(ok|FAIL|skip) /) continue
            verdict = line
            sub(/ .*/, "", verdict)
            name = substr(line, length(verdict) + 2)
            why = name
            sub(/:.*/, "", name)
            sub(/_.*/, "", name)
            if (!sub(/^[^:]*: /, "", why)) why = ""
            if (verdict == "skip" && name in tried) continue
            if (verdict == "ok" && tried[name] == "FAIL") continue
            tried[name] = verdict
            if (verdict == "skip") reason[key, name] = why
        }
        close($4)
        for (at = 1; at <= columns; at++) {
            found = names[at] in tried ? tried[names[at]] : "not tried"
            before = cell[key, names[at]]
            # The worse of two. If one client succeeds and the other cannot try, the cell is a contradiction.
            if (before == "" || found == "not tried") cell[key, names[at]] = found
            else if (before != found && before != "not tried") cell[key, names[at]] = "FAIL"
        }
    }
    END {
        head = "| server | over | client |"
        rule = "|---|---|---|"
        for (at = 1; at <= columns; at++) {
            head = head " " names[at] " |"
            rule = rule "---|"
        }
        print head
        print rule
        for (row = 1; row <= count; row++) {
            text = "| " rows[row] " |"
            for (at = 1; at <= columns; at++) {
                verdict = cell[rows[row], names[at]]
                total[verdict]++
                if (verdict == "skip") {
                    why = reason[rows[row], names[at]]
                    if (!(why in numbers)) {
                        numbers[why] = ++reasons
                        told[reasons] = why
                    }
                    verdict = "(" numbers[why] ")"
                }
                text = text " " verdict " |"
            }
            print text
        }
        for (at = 1; at <= reasons; at++) print "(" at ") " told[at]
        printf "%d cells: %d ok, %d with a reason, %d failed, %d not tried\n", count * columns, total["ok"], \
            total["skip"], total["FAIL"], total["not tried"]
    }'
