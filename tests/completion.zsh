# zsh -f completion.zsh FOLDER SCRATCH: an interactive zsh, whose fpath begins with FOLDER, is typed the words of each row with a tab behind
# them; what it shows is the row's pattern. Prints what it misses; status 77 where zsh lacks the module.
zmodload zsh/zpty zsh/datetime || exit 77
typeset -a rows=(
    'fagen doct' doctor
    'fagen tune --str' --strategy
    'fagen tune --strategy exh' exhaustive
    'fagen run --device sim:sm_90' sim:sm_90a
    'fagen run --device=sim:sm_103' sim:sm_103a
    'fagen tune --mask none,cau' none,causal
    'fagen cache exp' export
    'fagen sample -C fold' folder/
    'fagen emit -o not' note.txt
    'fagen help exit' exit-codes
    'fagen completion z' zsh
)
mkdir -p $2/folder && : >$2/note.txt && cd $2 || exit 1

seen() { # what the terminal shows, up to a pattern; false after 30 s without it
    local out end=$((EPOCHREALTIME + 30))
    shown=
    while [[ $shown != *$1* ]]; do
        if zpty -r -t child out; then shown+=$out; else sleep 0.02; fi
        ((EPOCHREALTIME < end)) || return 1
    done
}

typeset shown
integer missed=0
export TERM=dumb
zpty child zsh -f -i
zpty -w child "unsetopt zle_bracketed_paste; PS1='> '; fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -d $2/zcompdump; bindkey '^I' complete-word; print READ\\Y"
seen READY || { print -r -- "zsh does not start: $shown"; exit 1; }
for words want in $rows; do
    zpty -w -n child $'\x15'$words$'\t' # a kill of the line that was
    seen $want || { print -r -- "$words: no $want in: ${(V)shown}"; missed+=1; }
done
zpty -d child
((missed == 0)) && print "all rows: ok"
