package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"syscall"
	"time"
	"unicode/utf8"
)

const (
	defaultInterval = 2 * time.Second
	// mostKeys is how many rows the dashboard's data has at most.
	mostKeys = 200
	// otherLines are the lines of the screen that show no key: two above the table, its head, and two that may follow it.
	otherLines = 5
)

// shownStates are the states that need a person, by their names in the data.
var shownStates = map[string]string{
	"paused": "paused", "denied": "denied", "queue_full": "queue full", "waiting": "waiting",
}

type busyKey struct {
	Key string `json:"key"`
	// State is the first of its states.
	State           string  `json:"state"`
	Used            float64 `json:"used"`
	Max             float64 `json:"max"`
	Waiting         float64 `json:"waiting"`
	DeniedPerSecond float64 `json:"deniedPerSecond"`
	PausedMillis    float64 `json:"pausedMillis"`
}

type overview struct {
	Replicas int `json:"replicas"`
	// IsComplete says whether all keys are known.
	IsComplete bool `json:"isComplete"`
	// Keys has those first that need a person most.
	Keys []busyKey `json:"keys"`
}

func top(given invocation) (int, error) {
	v := given.values
	from, err := connectionOf(v)
	if err != nil {
		return 0, err
	}
	signals := catchSignals()
	defer signals.release()
	seen, err := from.overview(signals.ctx)
	isLive := isTerminal(1) && !v.has("once")
	switch {
	case err != nil:
	case isLive:
		err = from.showLive(signals, seen, v.millisOr("interval", defaultInterval), v.has("json"))
	case v.has("json"):
		err = printJSON(seen)
	default:
		err = print(seen.table(mostKeys)...)
	}
	var interrupted interruptedError
	if isLive && errors.As(err, &interrupted) && interrupted.signal == syscall.SIGINT {
		// A person ends it so.
		return 0, nil
	}
	if err != nil {
		failed := failureOf(err, from.urls)
		writeLine(program + ": " + failed.text)
		return failed.exitCode, nil
	}
	return 0, nil
}

func (c connection) overview(ctx context.Context) (overview, error) {
	status, body, err := c.request(ctx, http.MethodGet, fmt.Sprintf("/ui/data?limit=%d", mostKeys))
	if err != nil {
		return overview{}, err
	}
	if status != http.StatusOK {
		return overview{}, rejected(status, body, "the keys may not be read")
	}
	seen := overview{Keys: []busyKey{}}
	seen.Replicas = len(body.field("replicas").list())
	seen.IsComplete = as[bool](body.field("isComplete"), "true or false")
	for _, row := range body.field("keys").list() {
		states := row.field("states").list()
		if len(states) == 0 {
			continue
		}
		// The state for which it needs a person most comes first.
		state, isBusy := shownStates[states[0].text()]
		if !isBusy {
			continue
		}
		one := busyKey{Key: row.field("key").text(), State: state}
		// Its own limit comes first.
		if limits := row.field("limits").list(); len(limits) > 0 {
			one.Used, one.Max = limits[0].field("used").number(), limits[0].field("maximum").number()
		}
		one.Waiting = row.field("waiting").number()
		if denials := row.field("recentDenials"); denials.value != nil {
			one.DeniedPerSecond = denials.field("perSecond").number()
		}
		one.PausedMillis = row.field("pausedMillis").number()
		seen.Keys = append(seen.Keys, one)
	}
	return seen, body.err()
}

const (
	enterScreen = "\x1b[?1049h\x1b[?25l"
	leaveScreen = "\x1b[?25h\x1b[?1049l"
)

// showLive shows the keys again and again. The error is an interruptedError if a person or a signal ends it.
func (c connection) showLive(signals *signals, seen overview, interval time.Duration, isJSON bool) error {
	if !isJSON {
		_, _ = os.Stdout.WriteString(enterScreen)
		defer os.Stdout.WriteString(leaveScreen)
		defer readKeys()()
		go awaitQ(signals)
	}
	var failure error
	for {
		switch {
		case !isJSON:
			c.draw(seen, failure)
		case failure == nil:
			if err := printJSON(seen); err != nil {
				return err
			}
		}
		select {
		case <-signals.ctx.Done():
		case <-time.After(interval):
		}
		next, err := c.overview(signals.ctx)
		if signals.ctx.Err() != nil {
			return context.Cause(signals.ctx)
		}
		if failure = err; err == nil {
			seen = next
		}
	}
}

// awaitQ interrupts, as Ctrl-C does, once somebody has typed q.
func awaitQ(signals *signals) {
	typed := make([]byte, 64)
	for isTerminal(0) {
		n, err := os.Stdin.Read(typed)
		if err != nil {
			return
		}
		if strings.ContainsAny(string(typed[:n]), "qQ") {
			signals.interrupt(interruptedError{syscall.SIGINT})
		}
	}
}

// draw replaces what the terminal shows. Each line is cut at the right edge.
func (c connection) draw(seen overview, failure error) {
	columns, rows := terminalSize(1)
	replicas := "replicas"
	if seen.Replicas == 1 {
		replicas = "replica"
	}
	head := fmt.Sprintf("%s  %d %s  q ends this", time.Now().Format(time.TimeOnly), seen.Replicas, replicas)
	if failure != nil {
		head = failureOf(failure, c.urls).text
	}
	lines := append([]string{head, ""}, seen.table(max(1, rows-otherLines))...)
	lines = lines[:min(len(lines), rows)]
	for i, line := range lines {
		lines[i] = cut(printable(line), columns) + "\x1b[K"
	}
	_, _ = os.Stdout.WriteString("\x1b[H" + strings.Join(lines, "\r\n") + "\x1b[J")
}

// table returns the lines of a table of at most `most` keys. A last line says how many more there are.
func (o overview) table(most int) []string {
	lines := []string{"no key is paused, denied or waited for"}
	if len(o.Keys) > 0 {
		rows := [][]string{{"KEY", "STATE", "USED/MAX", "WAITING", "DENIED/S"}}
		for _, one := range o.Keys[:min(most, len(o.Keys))] {
			state := one.State
			if state == "paused" {
				state += " " + shownMillis(one.PausedMillis)
			}
			rows = append(rows, []string{printable(one.Key), state, fmt.Sprintf("%.0f/%.0f", one.Used, one.Max),
				fmt.Sprintf("%.0f", one.Waiting), fmt.Sprintf("%.1f", one.DeniedPerSecond)})
		}
		lines = aligned(rows, 2)
	}
	if more := len(o.Keys) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("%d more", more))
	}
	if !o.IsComplete {
		lines = append(lines, "not all keys are known")
	}
	return lines
}

// aligned returns the lines of a table whose first columns are texts, and whose others are aligned on the right.
func aligned(rows [][]string, texts int) []string {
	widths := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	lines := make([]string, len(rows))
	for i, row := range rows {
		for j, cell := range row {
			if j < texts {
				row[j] = fmt.Sprintf("%-*s", widths[j], cell)
			} else {
				row[j] = fmt.Sprintf("%*s", widths[j], cell)
			}
		}
		lines[i] = strings.Join(row, "  ")
	}
	return lines
}
