package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode"

	sluice "sluice-client"
)

// The exit codes, by their names in sysexits.h where one fits. CMD's own code, and 128 and a signal, come beside them.
const (
	exitNotFound      = 1
	exitUsage         = 64
	exitUnavailable   = 69
	exitLost          = 70
	exitUnwritable    = 74
	exitDenied        = 75
	exitTimedOut      = 124
	exitNotExecutable = 126
	exitNoSuchCommand = 127
	exitSignal        = 128
)

// outputError says that a result can't be written.
type outputError struct{ cause error }

func (e outputError) Error() string { return "the result can't be written: " + e.cause.Error() }

// interruptedError says that a signal has ended a wait.
type interruptedError struct{ signal syscall.Signal }

func (e interruptedError) Error() string { return "ended by " + e.signal.String() }

// startError says that CMD can't be started.
type startError struct {
	command string
	cause   error
}

func (e startError) isMissing() bool {
	return errors.Is(e.cause, syscall.ENOENT) || errors.Is(e.cause, syscall.ENOTDIR)
}

func (e startError) Error() string {
	if e.isMissing() {
		return e.command + ": not found"
	}
	reason := e.cause
	var errno syscall.Errno
	if errors.As(e.cause, &errno) {
		reason = errno
	}
	if errno == syscall.EACCES {
		return e.command + ": can't be executed: EACCES"
	}
	return fmt.Sprintf("%s: can't be executed: %v", e.command, reason)
}

// event is a message in JSON.
type event struct {
	Event             string `json:"event"`
	Key               string `json:"key"`
	RequestID         string `json:"requestId,omitempty"`
	Position          int    `json:"position,omitempty"`
	WaitMillis        *int64 `json:"waitMillis,omitempty"`
	RetryAfterSeconds int64  `json:"retryAfterSeconds,omitempty"`
	Limit             string `json:"limit,omitempty"`
	Error             string `json:"error,omitempty"`
	Code              string `json:"code,omitempty"`
	Status            int    `json:"status,omitempty"`
}

// failure is an error of a command, as its exit code and its messages say it, in the words of all clients.
type failure struct {
	exitCode int
	event    event
	text     string
}

// failureOf describes an error. `urls` are the addresses that were asked.
func failureOf(err error, urls []string) failure {
	var (
		interrupted interruptedError
		start       startError
		denied      *sluice.DeniedError
		lost        *sluice.PermitLostError
		rejected    *sluice.RejectedError
		unavailable *sluice.UnavailableError
	)
	message := strings.TrimPrefix(err.Error(), "sluice: ")
	ofStatus := func(exitCode int, message, code string, status int) failure {
		what := event{Event: "error", Error: message, Code: code, Status: status}
		return failure{exitCode, what, fmt.Sprintf("%s (status %d)", message, status)}
	}
	code := exitUsage
	switch {
	case errors.As(err, &interrupted):
		code = exitSignal + int(interrupted.signal)
	case errors.As(err, &start) && start.isMissing():
		code = exitNoSuchCommand
	case errors.As(err, &start):
		code = exitNotExecutable
	case errors.As(err, &outputError{}):
		code = exitUnwritable
	case errors.As(err, &denied):
		by := limitedBy(denied.Limit)
		what := event{Event: "denied", RetryAfterSeconds: seconds(denied.RetryAfter), Limit: denied.Limit}
		return failure{exitDenied, what, fmt.Sprintf("denied%s, try again in %s", by, shownTime(denied.RetryAfter))}
	case errors.As(err, &lost):
		message = "the permit no longer counts"
		if lost.Unwrap() != nil {
			message = "the permit could not be renewed before its hold lapsed"
		}
		return failure{exitLost, event{Event: "lost", Error: message}, "the hold is lost: " + message}
	case errors.As(err, &rejected):
		return ofStatus(exitUsage, rejected.Message, rejected.Code, rejected.Status)
	case errors.As(err, &unavailable) && unavailable.Status != 0:
		return ofStatus(exitUnavailable, unavailable.Message, unavailable.Code, unavailable.Status)
	case errors.As(err, &unavailable):
		if unavailable.Message == "unreachable" {
			message = "Sluice is unreachable"
		}
		what := event{Event: "error", Error: message}
		return failure{exitUnavailable, what, fmt.Sprintf("%s (%s)", message, strings.Join(urls, ", "))}
	}
	return failure{code, event{Event: "error", Error: message}, message}
}

// limitedBy names the limit of a denial, if the key has further limits.
func limitedBy(limit string) string {
	if limit == "" {
		return ""
	}
	return " by the limit " + limit
}

// clearLine moves the cursor to the start of the line, and clears the line.
const clearLine = "\r\x1b[K"

// messages is what a command writes on standard error: lines for a log, or with --json objects. On a terminal, the place in
// the queue is one line, which is kept up to date.
type messages struct {
	key             string
	urls            []string
	isJSON, isQuiet bool
	hasWaited       bool
	isLineOpen      bool
}

func (m *messages) waits(progress sluice.Progress) {
	place := fmt.Sprintf("position %d", progress.Position)
	if progress.Wait > 0 {
		place += ", at least " + shownTime(progress.Wait)
	}
	text := ""
	if !m.hasWaited {
		text = "waits, " + place
	}
	m.hasWaited = true
	if isTerminal(2) && !m.isJSON && !m.isQuiet {
		// A line that the terminal wraps could not be cleared.
		columns, _ := terminalSize(2)
		writeError(clearLine + cut(printable(m.key+": "+place), columns-1))
		m.isLineOpen = true
		return
	}
	wait := progress.Wait.Milliseconds()
	m.news(event{Event: "waiting", Position: progress.Position, WaitMillis: &wait}, text)
}

// approved says that the wait is over. Without --json it writes the text, if there is one.
func (m *messages) approved(requestID, text string) {
	m.news(event{Event: "approved", RequestID: requestID}, text)
}

// atATime says how much may be approved at a time, if Sluice has said it. `hits` is how much CMD takes, if that was given.
func atATime(quota []sluice.Quota, hits string) string {
	switch {
	case len(quota) == 0:
		return ""
	case hits == "":
		return fmt.Sprintf("at most %d at a time", quota[0].Limit)
	}
	return fmt.Sprintf("at most %d at a time, takes %s", quota[0].Limit, hits)
}

// lost says that the hold is lost, and CMD is ended.
func (m *messages) lost(err error) {
	what := failureOf(err, m.urls).event
	m.say(what, "the hold is lost, CMD is ended: "+what.Error)
}

func (m *messages) timedOut(after string) {
	m.say(event{Event: "timeout"}, "CMD has run for "+after+", and is ended by --timeout")
}

func (m *messages) unreleased(err error) {
	failed := failureOf(err, m.urls)
	what := event{Event: "unreleased", Error: failed.event.Error}
	m.say(what, "not released, the approval lapses with its hold: "+failed.text)
}

// unsignalled says that CMD can't be sent a signal.
func (m *messages) unsignalled(err error) {
	m.say(event{Event: "unsignalled", Error: err.Error()}, "CMD can't be signalled: "+err.Error())
}

// failed says that the command has failed, was denied, or was interrupted. It returns the exit code.
func (m *messages) failed(err error) int {
	failed := failureOf(err, m.urls)
	switch {
	case errors.As(err, &interruptedError{}):
		m.clear()
	case failed.exitCode == exitDenied:
		m.news(failed.event, failed.text)
	default:
		m.say(failed.event, failed.text)
	}
	return failed.exitCode
}

// news says what is no error.
func (m *messages) news(what event, text string) {
	if m.isQuiet {
		m.clear()
		return
	}
	m.say(what, text)
}

// say writes an event, or a text if there is one.
func (m *messages) say(what event, text string) {
	m.clear()
	what.Key = m.key
	if m.isJSON {
		writeLine(jsonOf(what))
	} else if text != "" {
		writeLine(program + ": " + m.key + ": " + text)
	}
}

func (m *messages) clear() {
	if m.isLineOpen {
		writeError(clearLine)
		m.isLineOpen = false
	}
}

// print writes the lines of a result on standard output. The error is an outputError.
func print(lines ...string) error {
	var all strings.Builder
	for _, line := range lines {
		all.WriteString(printable(line) + "\n")
	}
	if _, err := os.Stdout.WriteString(all.String()); err != nil {
		return outputError{err}
	}
	return nil
}

func printJSON(result any) error { return print(jsonOf(result)) }

// writeLine writes a line on standard error.
func writeLine(line string) { writeError(printable(line) + "\n") }

// writeError writes on standard error. A log that can't be written stops nothing: CMD keeps its approval.
func writeError(text string) { _, _ = os.Stderr.WriteString(text) }

func jsonOf(value any) string {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		panic(err) // All values are of types of this program.
	}
	return strings.TrimSuffix(buffer.String(), "\n")
}

// quoted is a text in quotes, as of JSON.
func quoted(text string) string { return jsonOf(text) }

// printable is a text for a line of a terminal: other callers choose keys. What could break a line, change the terminal, or
// show the text in another order is written as \u009b, also in JSON.
func printable(text string) string {
	var shown strings.Builder
	for _, r := range text {
		if unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control) {
			fmt.Fprintf(&shown, `\u%04x`, r)
		} else {
			shown.WriteRune(r)
		}
	}
	return shown.String()
}

// cut returns the first characters of a line.
func cut(line string, columns int) string {
	runes := []rune(line)
	return string(runes[:min(len(runes), max(0, columns))])
}

// mostOfUnit is from where on a time is shown in the next larger unit.
const mostOfUnit = 120

// shownTime is a time for people, rounded up: 40 s, 12 min or 3 h.
func shownTime(d time.Duration) string {
	whole := seconds(d)
	if whole < mostOfUnit {
		return fmt.Sprintf("%d s", whole)
	}
	if minutes := (whole + 59) / 60; minutes < mostOfUnit {
		return fmt.Sprintf("%d min", minutes)
	}
	return fmt.Sprintf("%d h", (whole+3599)/3600)
}

// seconds rounds a time up.
func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }
