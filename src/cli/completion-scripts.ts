/** What a shell reads; each asks `portal __complete WORD…`, which answers one completion a line: `word<TAB>what it is`. */
export const scripts = {
  bash: `_portal() {
  local words=("\${COMP_WORDS[@]:1:COMP_CWORD}")
  local line
  COMPREPLY=()
  while IFS=$'\\t' read -r line _; do
    [ -n "$line" ] && COMPREPLY+=("$line")
  done < <(portal __complete "\${words[@]}" 2>/dev/null)
  [ "\${#COMPREPLY[@]}" -eq 0 ] && compopt -o default 2>/dev/null
  return 0
}
complete -F _portal portal`,
  zsh: `#compdef portal
_portal() {
  local -a found
  local word about
  while IFS=$'\\t' read -r word about; do
    [[ -n $word ]] && found+=("\${word//:/\\\\:}\${about:+:$about}")
  done < <(portal __complete "\${(@)words[2,CURRENT]}" 2>/dev/null)
  if (( \${#found} )); then _describe 'portal' found; else _files; fi
}
compdef _portal portal`,
  fish: `function __portal_complete
  set -l words (commandline -opc) (commandline -ct)
  portal __complete $words[2..-1] 2>/dev/null
end
complete -c portal -a '(__portal_complete)'`,
} as const
