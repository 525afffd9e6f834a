package main

import (
	"fmt"
	"strings"
)

const shells = "bash zsh fish"

func completion(given invocation) (int, error) {
	scripts := map[string]func() string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}
	script, isKnown := scripts[given.operands[0]]
	if !isKnown {
		return 0, wrong("completion takes bash, zsh or fish, not %s", quoted(given.operands[0]))
	}
	return 0, print(strings.Split(script(), "\n")...)
}

// fill replaces each @NAME in a script.
func fill(script string, texts ...string) string {
	return strings.NewReplacer(texts...).Replace(script)
}

const bashTemplate = `# Completion of sluice-client for bash: source <(sluice-client completion bash)
_sluice_client() {
  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
  local command='' word words i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=${COMP_WORDS[i]}
    if [[ $word == -- && $command == run ]]; then
      COMPREPLY=($(compgen -c -- "$current"))
      return
    fi
    if [[ -z $command && $word != -* ]]; then command=$word; fi
  done
  case $previous in
    --token-file)
      COMPREPLY=($(compgen -f -- "$current"))
      return
      ;;
    @values)
      return
      ;;
  esac
  case $command in
    '') words='@commands --help --version' ;;
@cases
    *) return ;;
  esac
  if [[ $current == -* || -z $command || $command == completion ]]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  fi
}
complete -F _sluice_client sluice-client`

func bashScript() string {
	var withValue, names, cases []string
	for _, o := range options {
		if o.takes != "" && o.name != "token-file" {
			withValue = append(withValue, "--"+o.name)
		}
	}
	for _, c := range commands {
		names = append(names, c.name)
		words := shells
		if len(c.options) > 0 {
			words = "--" + strings.Join(c.options, " --")
		}
		cases = append(cases, fmt.Sprintf("    %s) words='%s --help' ;;", c.name, words))
	}
	return fill(bashTemplate, "@values", strings.Join(withValue, " | "), "@commands", strings.Join(names, " "),
		"@cases", strings.Join(cases, "\n"))
}

const zshTemplate = `# Completion of sluice-client for zsh: source <(sluice-client completion zsh)
_sluice_client() {
  local -a commands
  commands=(
@commands
  )
  if ((CURRENT == 2)); then
    _describe command commands
    return
  fi
  shift words
  ((CURRENT--))
  case $words[1] in
@cases
  esac
}
compdef _sluice_client sluice-client`

func zshScript() string {
	var names, cases []string
	for _, c := range commands {
		names = append(names, fmt.Sprintf("    '%s:%s'", c.name, c.summary))
		var specs []string
		for _, name := range c.options {
			specs = append(specs, zshOption(name))
		}
		specs = append(specs, "'--help[print help]'")
		operands := c.operands
		if c.optional != "" {
			operands = append([]string{}, append(operands, c.optional)...)
		}
		for i, operand := range operands {
			among := ""
			if operand == "SHELL" {
				among = "(" + shells + ")"
			}
			specs = append(specs, fmt.Sprintf("'%d:%s:%s'", i+1, operand, among))
		}
		if c.runs {
			specs = append(specs, "'*::CMD:_normal'")
		}
		cases = append(cases, fmt.Sprintf("    %s) _arguments -S %s ;;", c.name, strings.Join(specs, " ")))
	}
	return fill(zshTemplate, "@commands", strings.Join(names, "\n"), "@cases", strings.Join(cases, "\n"))
}

func zshOption(name string) string {
	o, _ := optionOf(name)
	repeated, equals, value := "", "", ""
	if o.kind == texts {
		repeated = "*"
	}
	if o.takes != "" {
		equals, value = "=", ":"+o.takes+":"
	}
	if name == "token-file" {
		value += "_files"
	}
	return fmt.Sprintf("'%s--%s%s[%s]%s'", repeated, name, equals, o.text, value)
}

func fishScript() string {
	lines := []string{"# Completion of sluice-client for fish: sluice-client completion fish | source", "-f"}
	for _, c := range commands {
		seen := fmt.Sprintf("-n '__fish_seen_subcommand_from %s'", c.name)
		lines = append(lines, fmt.Sprintf("-n __fish_use_subcommand -a %s -d '%s'", c.name, c.summary))
		for _, name := range c.options {
			o, _ := optionOf(name)
			value := ""
			if name == "token-file" {
				value = " -r -F"
			} else if o.takes != "" {
				value = " -x"
			}
			lines = append(lines, fmt.Sprintf("%s -l %s%s -d '%s'", seen, name, value, o.text))
		}
		if len(c.options) == 0 {
			lines = append(lines, fmt.Sprintf("%s -a '%s'", seen, shells))
		}
		if c.runs {
			lines = append(lines, "-n 'contains -- -- (commandline -opc)' -F -a '(__fish_complete_command)'")
		}
	}
	return strings.Join(lines, "\ncomplete -c sluice-client ")
}
