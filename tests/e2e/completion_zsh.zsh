# What zsh shows when TAB is pressed behind some words: completion_zsh.zsh DIRECTORY WORDS, where DIRECTORY holds _haul.
setopt extendedglob
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -D; bindkey '^I' complete-word
unsetopt auto_menu; stty columns 200; PROMPT='rea''dy> '"
# The editor of lines has the terminal once it shows its prompt; before, ^U would take TAB away, too.
zpty -r shell shown '*ready> *'
zpty -w -n shell "$2"$'\t'
# ^U takes the line away, so that nothing of it is run.
zpty -w -n shell $'\x15'"print EN''D"$'\n'
zpty -r shell shown '*END*'
print -r -- ${shown//$'\e'\[[0-9;?]#[a-zA-Z]/}
