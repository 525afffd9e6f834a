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
	return fmt.Sprintf("%s: can't be executed: %s", e.command, errorName(e.cause))
}

// errorName is the name of an error of the system, as other programs print it.
func errorName(err error) string {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return err.Error()
	}
	switch errno {
	case syscall.EACCES:
		return "EACCES"
	case syscall.E2BIG:
		return "E2BIG"
	}
	return errno.Error()
}

// exitCodeOf returns the exit code for an error of a command.
func exitCodeOf(err error) int {
	var interrupted interruptedError
	var start startError
	var unavailable *sluice.UnavailableError
	switch {
	case errors.As(err, &interrupted):
		return exitSignal + int(interrupted.signal)
	case errors.As(err, &start) && start.isMissing():
		return exitNoSuchCommand
	case errors.As(err, &start):
		return exitNotExecutable
	case errors.As(err, &outputError{}):
		return exitUnwritable
	case errors.Is(err, sluice.ErrDenied):
		return exitDenied
	case errors.Is(err, sluice.ErrPermitLost):
		return exitLost
	case errors.As(err, &unavailable):
		return exitUnavailable
	}
	return exitUsage
}

// messageOf says in the words of all clients what has failed.
func messageOf(err error) string {
	var lost *sluice.PermitLostError
	var rejected *sluice.RejectedError
	var unavailable *sluice.UnavailableError
	switch {
	case errors.As(err, &lost) && lost.Unwrap() == nil:
		return "the permit no longer counts"
	case errors.As(err, &lost):
		return "the permit could not be renewed before its hold lapsed"
	case errors.As(err, &rejected):
		return rejected.Message
	case errors.As(err, &unavailable) && unavailable.Status == 0:
		if unavailable.Message == "unreachable" {
			return "Sluice is unreachable"
		}
		return strings.TrimPrefix(unavailable.Error(), "sluice: ")
	case errors.As(err, &unavailable):
		return unavailable.Message
	}
	return strings.TrimPrefix(err.Error(), "sluice: ")
}

// textOf is what a failure is called in a line. `urls` are the addresses that were asked.
func textOf(err error, urls []string) string {
	var denied *sluice.DeniedError
	var rejected *sluice.RejectedError
	var unavailable *sluice.UnavailableError
	switch {
	case errors.As(err, &denied):
		by := ""
		if denied.Limit != "" {
			by = " by the limit " + denied.Limit
		}
		return fmt.Sprintf("denied%s, try again in %s", by, shownTime(denied.RetryAfter))
	case errors.Is(err, sluice.ErrPermitLost):
		return "the hold is lost: " + messageOf(err)
	case errors.As(err, &rejected):
		return fmt.Sprintf("%s (status %d)", rejected.Message, rejected.Status)
	case errors.As(err, &unavailable) && unavailable.Status != 0:
		return fmt.Sprintf("%s (status %d)", unavailable.Message, unavailable.Status)
	case errors.As(err, &unavailable):
		return fmt.Sprintf("%s (%s)", messageOf(err), strings.Join(urls, ", "))
	}
	return messageOf(err)
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

func eventOf(err error) event {
	var denied *sluice.DeniedError
	var rejected *sluice.RejectedError
	var unavailable *sluice.UnavailableError
	what := event{Event: "error", Error: messageOf(err)}
	switch {
	case errors.As(err, &denied):
		return event{Event: "denied", RetryAfterSeconds: seconds(denied.RetryAfter), Limit: denied.Limit}
	case errors.Is(err, sluice.ErrPermitLost):
		what.Event = "lost"
	case errors.As(err, &rejected):
		what.Code, what.Status = rejected.Code, rejected.Status
	case errors.As(err, &unavailable):
		what.Code, what.Status = unavailable.Code, unavailable.Status
	}
	return what
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

// approved says that the wait is over.
func (m *messages) approved(requestID string) {
	m.news(event{Event: "approved", RequestID: requestID}, "")
}

// lost says that the hold is lost, and CMD is ended.
func (m *messages) lost(err error) {
	m.say(eventOf(err), "the hold is lost, CMD is ended: "+messageOf(err))
}

func (m *messages) timedOut(after string) {
	m.say(event{Event: "timeout"}, "CMD has run for "+after+", and is ended by --timeout")
}

func (m *messages) unreleased(err error) {
	text := "not released, the approval lapses with its hold: " + textOf(err, m.urls)
	m.say(event{Event: "unreleased", Error: messageOf(err)}, text)
}

// unsignalled says that CMD can't be sent a signal.
func (m *messages) unsignalled(err error) {
	m.say(event{Event: "unsignalled", Error: err.Error()}, "CMD can't be signalled: "+err.Error())
}

// failed says that the command has failed, was denied, or was interrupted.
func (m *messages) failed(err error) {
	switch {
	case errors.As(err, &interruptedError{}):
		m.clear()
	case errors.Is(err, sluice.ErrDenied):
		m.news(eventOf(err), textOf(err, m.urls))
	default:
		m.say(eventOf(err), textOf(err, m.urls))
	}
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
	}
	m.isLineOpen = false
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
