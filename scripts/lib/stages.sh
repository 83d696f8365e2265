# Stages in lanes: those of one lane follow each other, lanes run side by side. Each stage has a
# log of its own, which is shown whole when it ended.

STAGES=()
STAGE_LOGS=()

# stage LANE NAME COMMAND: one more to run. COMMAND is a line of bash.
stage() {
    STAGES+=("$1" "$2" "$3")
}

# run_stages DIRECTORY: run them. Fails when one does, after all have run. The paths of their
# logs, below DIRECTORY, are added to STAGE_LOGS.
run_stages() {
    local directory="$1" failed=0 code ended index lane name waiting busy
    local -A lane_of=() pid_of=() began=()
    # Not `wait -n`, which misses what ends while it does not wait.
    mkfifo "$directory/ended"
    exec {ended}<>"$directory/ended"
    rm "$directory/ended"
    # Without job control, what runs in the background ignores interrupts, and all that it starts.
    set -m
    trap 'end_stages "${pid_of[@]}"; exit 1' INT TERM HUP
    while true; do
        waiting=() busy=" ${lane_of[*]} "
        for ((index = 0; index < ${#STAGES[@]}; index += 3)); do
            lane="${STAGES[index]}" name="${STAGES[index + 1]}"
            if [[ "$busy" == *" $lane "* ]]; then
                waiting+=("${STAGES[@]:index:3}")
                continue
            fi
            busy+="$lane "
            STAGE_LOGS+=("$directory/$name.log")
            run_stage "$name" "${STAGES[index + 2]}" "$directory/$name.log" "$ended" &
            lane_of[$name]="$lane" pid_of[$name]=$! began[$name]="$SECONDS"
            say "$name: began"
        done
        STAGES=("${waiting[@]}")
        [ ${#pid_of[@]} -gt 0 ] || break
        read -r name code <&"$ended"
        [ "$code" -eq 0 ] || failed=1
        cat "$directory/$name.log"
        say "$name: ended with $code after $((SECONDS - began[$name])) s"
        unset "pid_of[$name]" "lane_of[$name]"
    done
    trap - INT TERM HUP
    set +m
    exec {ended}>&-
    return "$failed"
}

# run_stage NAME COMMAND LOG DESCRIPTOR: run one, and tell DESCRIPTOR its name and exit code.
run_stage() {
    local code=0
    bash -c "$2" >"$3" 2>&1 </dev/null || code=$?
    printf '%s %s\n' "$1" "$code" >&"$4"
}

# end_stages PID…: end what still runs, with all that it started.
end_stages() {
    local pid
    for pid in "$@"; do
        kill -- "-$pid" 2>/dev/null || true
    done
}

# closing_line LOG: the last line of pytest in it; fails when there is none.
closing_line() {
    grep -E '^=+ .*(passed|failed|error|no tests ran).* in .*=+$' "$1" | tail -n 1 | grep .
}

# count WORD… <LINES: the sum of the numbers before these words.
count() {
    local words
    words="$(IFS='|' && printf '%s' "$*")"
    { grep -oE "[0-9]+ ($words)" || true; } | awk '{ sum += $1 } END { print sum + 0 }'
}
