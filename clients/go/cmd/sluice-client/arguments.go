package main

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// kind is what an option takes as its value.
type kind int

const (
	flag kind = iota
	text
	texts
	// name is a text of 1 to 64 bytes.
	name
	number
	duration
)

type option struct {
	name string
	kind kind
	// takes names the value in the help.
	takes string
	text  string
}

var options = []option{
	{"max", number, "N", "the most at a time (maxRequests); run: 1, unless a rule says otherwise"},
	{"window", duration, "DURATION", "the length of a window (windowMillis)"},
	{"max-queue", number, "N", "the places in the queue (maxRequestsInQueue)"},
	{"hits", number, "N", "how much of the maximum it takes; 1 by default"},
	{"lane", text, "NAME", "the lane of the key; its last one by default"},
	{"group", name, "NAME", "the fair group of the key, such as a tenant"},
	{"hold", duration, "DURATION", "how long it is held (run: 30s, and renewed; check: not held)"},
	{"wait", flag, "", "wait for a turn"},
	{"no-wait", flag, "", "be denied at once instead of waiting"},
	{"max-wait", duration, "DURATION", "the longest wait; no limit by default"},
	{"holder", name, "TEXT", "who holds it; host and process by default"},
	{"timeout", duration, "DURATION", "end CMD after this time, with exit code 124"},
	{"grace", duration, "DURATION", "between SIGTERM and SIGKILL when CMD is ended; 10s by default"},
	{"quiet", flag, "", "write errors only"},
	{"end", flag, "", "end the pause"},
	{"interval", duration, "DURATION", "between two draws; 2s by default"},
	{"once", flag, "", "print once, also on a terminal"},
	{"url", texts, "URL", "an address of Sluice; repeat it for several addresses"},
	{"token-file", text, "FILE", "the file with the bearer token"},
	{"json", flag, "", "write JSON"},
}

// written is the option as it is typed, with the name of its value.
func (o option) written() string { return strings.TrimRight("--"+o.name+" "+o.takes, " ") }

func optionOf(name string) (option, bool) {
	i := slices.IndexFunc(options, func(o option) bool { return o.name == name })
	if i < 0 {
		return option{}, false
	}
	return options[i], true
}

type command struct {
	name string
	// operands are the arguments that it needs, and optional is one that it may have as well.
	operands []string
	optional string
	// runs says whether a command line follows after --.
	runs           bool
	do             func(invocation) (int, error)
	options        []string
	usage, summary string
}

// commands is filled by init, since the commands print parts of it.
var commands []command

func init() {
	connection := []string{"url", "token-file", "json"}
	with := func(lists ...[]string) []string { return slices.Concat(append(lists, connection)...) }
	place := []string{"hits", "lane", "group"}
	asking := slices.Concat([]string{"max", "window", "max-queue"}, place, []string{"hold", "max-wait", "holder"})
	key := []string{"KEY"}
	commands = []command{
		{"run", key, "", true, asksWith(run), with(asking, []string{"no-wait", "timeout", "grace", "quiet"}),
			"run KEY [options] -- CMD [ARG...]", "runs CMD while it holds an approval"},
		{"check", key, "", false, asksWith(check), with(asking, []string{"wait", "quiet"}),
			"check KEY [options]", "prints the request id of an approval"},
		{"release", []string{"KEY", "ID"}, "", false, asksWith(release), with(),
			"release KEY ID [options]", "gives an approval back"},
		{"peek", key, "", false, asksWith(peek), with(place),
			"peek KEY [options]", "says what a check would get now; changes nothing"},
		{"pause", key, "DURATION", false, pause, with([]string{"group", "end"}),
			"pause KEY DURATION|--end [options]", "approves no check of KEY for a time"},
		{"holders", key, "", false, asksWith(holders), with(),
			"holders KEY [options]", "shows who holds approvals of KEY"},
		{"end-hold", []string{"KEY", "HANDLE"}, "", false, asksWith(endHold), with(),
			"end-hold KEY HANDLE [options]", "ends a hold, by its handle in the list of holders"},
		{"top", nil, "", false, top, with([]string{"interval", "once"}),
			"top [options]", "shows keys that are paused, denied or waited for, live"},
		{"completion", []string{"SHELL"}, "", false, completion, nil,
			"completion bash|zsh|fish", "prints a script for the shell"},
	}
}

// commandLineError says what is wrong with the command line, in one line.
type commandLineError string

func (e commandLineError) Error() string { return string(e) }

func wrong(format string, values ...any) error {
	return commandLineError(fmt.Sprintf(format, values...))
}

// values has the options that were given.
type values struct {
	texts   map[string][]string
	numbers map[string]int64
}

func (v values) has(option string) bool { return len(v.texts[option]) > 0 }

func (v values) text(option string) string { return strings.Join(v.texts[option], "") }

// number returns the value of an option for the client, which takes 0 for the default: a 0 that was given becomes negative,
// which turns the option off or is rejected by Sluice.
func (v values) number(option string) int64 {
	if n := v.numbers[option]; n != 0 || !v.has(option) {
		return n
	}
	return -1
}

func (v values) millis(option string) time.Duration { return durationOf(v.number(option)) }

func (v values) millisOr(option string, usual time.Duration) time.Duration {
	if v.has(option) {
		return max(0, v.millis(option))
	}
	return usual
}

func (v values) add(o option, value string) error {
	written := "--" + o.name
	switch {
	case o.kind == name && (value == "" || len(value) > 64):
		return wrong("%s must be 1 to 64 bytes of UTF-8, not %d", written, len(value))
	case (o.kind == text || o.kind == texts) && value == "":
		return wrong("%s needs a value", written)
	case o.kind == number:
		n, err := strconv.ParseUint(value, 10, 64)
		if err != nil || len(value) > 15 {
			return wrong("%s must be a whole number, not %s", written, quoted(value))
		}
		v.numbers[o.name] = int64(n)
	case o.kind == duration:
		millis, err := parseDuration(written, value)
		if err != nil {
			return err
		}
		if millis == 0 && (o.name == "interval" || o.name == "timeout") {
			return wrong("%s must be above 0", written)
		}
		v.numbers[o.name] = millis
	}
	if o.kind != texts {
		v.texts[o.name] = nil
	}
	v.texts[o.name] = append(v.texts[o.name], value)
	return nil
}

var (
	durationPattern = regexp.MustCompile(`^(\d{1,9})(ms|s|m|h|d)$`)
	unitMillis      = map[string]int64{"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
)

// mostMillis is the longest time that Go has, longer than any that Sluice takes.
const mostMillis = math.MaxInt64 / int64(time.Millisecond)

// parseDuration reads a duration such as 30s, in milliseconds. `what` has the value, for the error.
func parseDuration(what, text string) (int64, error) {
	found := durationPattern.FindStringSubmatch(text)
	if found == nil {
		return 0, wrong("%s must be a duration such as 30s, 10m or 2h, not %s", what, quoted(text))
	}
	n, _ := strconv.ParseInt(found[1], 10, 64)
	return n * unitMillis[found[2]], nil
}

// durationOf clamps times that Go does not have.
func durationOf(millis int64) time.Duration {
	return time.Duration(min(millis, mostMillis)) * time.Millisecond
}

// invocation is a command as it was asked for.
type invocation struct {
	// command is nil if the help of all commands is asked for, or the version.
	command     *command
	asksHelp    bool
	asksVersion bool
	operands    []string
	values      values
	commandLine []string
}

// given is an option as it was given.
type given struct {
	written, value string
	hasValue       bool
}

// parse reads a command line. The error is a commandLineError.
func parse(args []string) (invocation, error) {
	var asked invocation
	before, rest := args, []string(nil)
	if end := slices.Index(args, "--"); end >= 0 {
		before, rest = args[:end], args[end+1:]
	}
	words, listed := split(before)
	if len(words) > 0 {
		i := slices.IndexFunc(commands, func(c command) bool { return c.name == words[0] })
		if i < 0 {
			return asked, wrong("unknown command %s", words[0])
		}
		asked.command, asked.operands = &commands[i], words[1:]
	}
	for _, option := range listed {
		asked.asksHelp = asked.asksHelp || option.written == "--help" || option.written == "-h"
		asked.asksVersion = asked.asksVersion || option.written == "--version"
	}
	if asked.asksHelp || asked.asksVersion {
		return asked, nil
	}
	if err := asked.take(listed); err != nil {
		return asked, err
	}
	switch {
	case asked.command == nil:
		return asked, wrong("a command is missing")
	case asked.command.runs:
		asked.commandLine = rest
	default:
		asked.operands = append(asked.operands, rest...)
	}
	return asked, asked.demandComplete()
}

// split tells the options, with their values, from the other words.
func split(args []string) (words []string, listed []given) {
	for i := 0; i < len(args); i++ {
		word := args[i]
		if word == "-" || !strings.HasPrefix(word, "-") {
			words = append(words, word)
			continue
		}
		written, value, hasValue := strings.Cut(word, "=")
		option, _ := optionOf(strings.TrimPrefix(written, "--"))
		// After = a value may begin with -.
		if !hasValue && option.takes != "" && i+1 < len(args) && !strings.HasPrefix(args[i+1], "-") {
			i++
			value, hasValue = args[i], true
		}
		listed = append(listed, given{written, value, hasValue})
	}
	return words, listed
}

func (a *invocation) take(listed []given) error {
	a.values = values{map[string][]string{}, map[string]int64{}}
	for _, one := range listed {
		bare, isLong := strings.CutPrefix(one.written, "--")
		option, isKnown := optionOf(bare)
		switch {
		case !isKnown || !isLong:
			return wrong("unknown option %s", one.written)
		case a.command != nil && !slices.Contains(a.command.options, option.name):
			return wrong("%s takes no option %s", a.command.name, one.written)
		case option.takes != "" && !one.hasValue:
			return wrong("%s needs a value", one.written)
		case option.takes == "" && one.hasValue:
			return wrong("%s takes no value", one.written)
		case !utf8.ValidString(one.value):
			return wrong("%s is not valid UTF-8", strconv.QuoteToASCII(one.value))
		}
		if err := a.values.add(option, one.value); err != nil {
			return err
		}
	}
	return nil
}

func (a *invocation) demandComplete() error {
	for i, operand := range a.command.operands {
		if i >= len(a.operands) || a.operands[i] == "" {
			return wrong("%s needs %s", a.command.name, operand)
		}
	}
	if a.command.runs && len(a.commandLine) == 0 {
		return wrong("%s needs CMD after --", a.command.name)
	}
	for i, operand := range a.operands {
		most := len(a.command.operands)
		if a.command.optional != "" {
			most++
		}
		if !utf8.ValidString(operand) {
			return wrong("%s is not valid UTF-8", strconv.QuoteToASCII(operand))
		}
		if i >= most {
			return wrong("unexpected argument %s", quoted(operand))
		}
	}
	return nil
}

var usesEnvironment = []string{
	"Without --url: SLUICE_URL, with commas between several addresses, else http://localhost:8080.",
	"Without --token-file: the file in SLUICE_TOKEN_FILE, else the token in SLUICE_TOKEN.",
	"Durations are such as 500ms, 30s, 10m, 2h or 1d.",
}

// helpText returns the lines that --help prints about a command, or about all.
func helpText(about *command) []string {
	if about == nil {
		lines := []string{"Usage:"}
		for _, c := range commands {
			lines = append(lines, "  "+program+" "+c.usage, "      "+c.summary)
		}
		lines = append(lines, "  "+program+" --help | COMMAND --help | --version", "")
		lines = append(append(lines, usesEnvironment...), "")
		return append(lines,
			"Exit codes: 0 approved (of run: as of CMD), 1 no such approval or hold, 64 wrong command line or request,",
			"69 no decision, 70 the hold was lost, 74 no output, 75 denied, 124 CMD was timed out,",
			"126 and 127 CMD can not be started, 128+n ended by signal n.")
	}
	summary := strings.ToUpper(about.summary[:1]) + about.summary[1:] + "."
	lines := []string{"Usage: " + program + " " + about.usage, "", summary}
	if len(about.options) == 0 {
		return lines
	}
	lines = append(lines, "", "Options:")
	for _, name := range about.options {
		option, _ := optionOf(name)
		lines = append(lines, fmt.Sprintf("  %-24s%s", option.written(), option.text))
	}
	return append(append(lines, ""), usesEnvironment...)
}
