package main

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net/http"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	sluice "sluice-client"
)

const (
	defaultURL = "http://localhost:8080"
	// seenPoll is how often Sluice is asked for the place in the queue if somebody looks at it on a terminal.
	seenPoll = 2 * time.Second
	// readTimeout is the longest time of a request that the client of this module does not know.
	readTimeout = 5 * time.Second
	// mostBytes is more than the data of the dashboard has.
	mostBytes = 16 << 20
)

// direct sends without the proxies of the environment, as the client. It keeps its connections for the next request.
var direct = &http.Client{Transport: &http.Transport{}}

// connection has the addresses and the token of the options, or else of the environment.
type connection struct {
	urls  []string
	token func() (string, error)
}

// connectionOf returns a commandLineError if an address is wrong, or the token can't be read or sent.
func connectionOf(v values) (connection, error) {
	urls := v.texts["url"]
	if len(urls) == 0 {
		for _, listed := range strings.Split(os.Getenv("SLUICE_URL"), ",") {
			if listed = strings.TrimSpace(listed); listed != "" {
				urls = append(urls, listed)
			}
		}
	}
	if len(urls) == 0 {
		urls = []string{defaultURL}
	}
	for _, given := range urls {
		if base, err := url.Parse(given); err != nil || base.Host == "" || !strings.HasPrefix(base.Scheme, "http") {
			return connection{}, wrong("url must be an address such as http://localhost:8080, not %s", given)
		}
	}
	read := func() (string, error) { return "", nil }
	if file := v.text("token-file"); file != "" {
		read = func() (string, error) { return tokenIn(file) }
	} else if file := os.Getenv("SLUICE_TOKEN_FILE"); file != "" {
		read = func() (string, error) { return tokenIn(file) }
	} else if token := os.Getenv("SLUICE_TOKEN"); token != "" {
		read = func() (string, error) { return sendable(token, "in SLUICE_TOKEN") }
	}
	// What writes the file may renew it, so that it is read for each request, and now to find a mistake.
	_, err := read()
	return connection{urls, read}, err
}

func tokenIn(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", wrong("the token can't be read: %v", err)
	}
	return sendable(string(content), "in "+file)
}

var visible = regexp.MustCompile(`^[\x21-\x7e]+$`)

// sendable returns a token without white space around it. The error says that no header can have it.
func sendable(text, where string) (string, error) {
	token := strings.TrimSpace(text)
	switch {
	case token == "":
		return "", wrong("the token %s is empty", where)
	case !visible.MatchString(token):
		return "", wrong("the token %s has characters other than visible ASCII", where)
	}
	return token, nil
}

// request sends a request that the client of this module does not know. Each address is asked until one answers. The status
// is below 500.
func (c connection) request(ctx context.Context, method, path string) (status int, body part, err error) {
	for _, base := range c.urls {
		status, body, err = c.requestOf(ctx, base, method, path)
		var unavailable *sluice.UnavailableError
		if ctx.Err() != nil || !errors.As(err, &unavailable) {
			break
		}
	}
	return status, body, err
}

func (c connection) requestOf(ctx context.Context, base, method, path string) (int, part, error) {
	bounded, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(bounded, method, strings.TrimRight(base, "/")+path, nil)
	if err != nil {
		return 0, part{}, err
	}
	token, err := c.token()
	if err != nil {
		return 0, part{}, err
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := direct.Do(request)
	if ctx.Err() != nil {
		return 0, part{}, context.Cause(ctx)
	}
	if err != nil {
		return 0, part{}, &sluice.UnavailableError{Message: "unreachable"}
	}
	defer response.Body.Close()
	content, err := io.ReadAll(io.LimitReader(response.Body, mostBytes))
	if err != nil {
		return 0, part{}, &sluice.UnavailableError{Message: "the answer was lost"}
	}
	body := part{problem: new(string)}
	_ = json.Unmarshal(content, &body.value)
	if response.StatusCode >= 500 {
		return 0, part{}, &sluice.UnavailableError{Status: response.StatusCode, Message: "the data can't be read"}
	}
	return response.StatusCode, body, nil
}

// rejected is the error of an answer with a 4xx that a command can't use.
func rejected(status int, body part, otherwise string) error {
	if status == http.StatusNotFound {
		otherwise = "no dashboard at this address: DEBUG_ENDPOINTS is false, or it is on the port in ADMIN_PORT"
	} else if said, ok := body.field("error").value.(string); ok && body.field("code").value != nil {
		otherwise = said
	}
	return &sluice.RejectedError{Status: status, Message: otherwise}
}

// part is a value in the body of an answer. Something other than Sluice may have answered, so that the value may be of any
// kind: the first reading of a value that is not what it must be is noted in `problem`.
type part struct {
	value   any
	path    string
	problem *string
}

// err returns an error that names the first value that is wrong.
func (p part) err() error {
	if *p.problem == "" {
		return nil
	}
	return &sluice.UnavailableError{Status: http.StatusOK, Message: "not an answer from Sluice: " + *p.problem}
}

func (p part) field(name string) part {
	fields := as[map[string]any](p, "an object")
	path := name
	if p.path != "" {
		path = p.path + "." + name
	}
	return part{fields[name], path, p.problem}
}

func (p part) list() []part {
	var parts []part
	for i, value := range as[[]any](p, "a list") {
		parts = append(parts, part{value, p.path + "[" + strconv.Itoa(i) + "]", p.problem})
	}
	return parts
}

func (p part) text() string { return as[string](p, "a text") }

// mostNumber is the largest number that JSON can have exactly everywhere.
const mostNumber = 1<<53 - 1

func (p part) number() float64 {
	if n, ok := p.value.(float64); ok && math.Abs(n) > mostNumber {
		p.value = nil
	}
	return as[float64](p, "a number")
}

func as[T any](p part, kind string) T {
	value, ok := p.value.(T)
	if !ok && *p.problem == "" {
		what := p.path
		if what == "" {
			what = "the body"
		}
		*p.problem = what + " must be " + kind
	}
	return value
}

// asked is what a command that asks about a key works with.
type asked struct {
	invocation
	connection
	key      string
	client   *sluice.Client
	messages *messages
	signals  *signals
}

// asksWith returns a command that asks Sluice about a key. Its failures are written as messages.
func asksWith(work func(asked) (int, error)) func(invocation) (int, error) {
	return func(given invocation) (int, error) {
		v := given.values
		connection, err := connectionOf(v)
		if err != nil {
			return 0, err
		}
		options := sluice.Options{
			URLs:        connection.urls,
			TokenSource: func(context.Context) (string, error) { return connection.token() },
			Holder:      v.text("holder"),
		}
		if isTerminal(2) {
			options.LongPoll = seenPoll
		}
		client, err := sluice.New(options)
		if err != nil {
			return 0, wrong("%s", failureOf(err, nil).text)
		}
		// It waits until places and approvals that are being given back are given back.
		defer client.Close()
		key := given.operands[0]
		says := &messages{key: key, urls: connection.urls, isJSON: v.has("json"), isQuiet: v.has("quiet")}
		signals := catchSignals()
		defer signals.release()
		code, err := work(asked{given, connection, key, client, says, signals})
		if err != nil {
			return says.failed(err), nil
		}
		return code, nil
	}
}

// checkOptions returns what a check asks for.
func (a asked) checkOptions() sluice.CheckOptions {
	v := a.values
	return sluice.CheckOptions{
		Hits:               int(v.number("hits")),
		Hold:               v.millis("hold"),
		MaxRequests:        int(v.number("max")),
		MaxRequestsInQueue: int(v.number("max-queue")),
		Window:             v.millis("window"),
		Lane:               v.text("lane"),
		Group:              v.text("group"),
	}
}

func (a asked) waitOptions() sluice.WaitOptions {
	maxWait := a.values.millis("max-wait")
	return sluice.WaitOptions{CheckOptions: a.checkOptions(), MaxWait: maxWait, OnProgress: a.messages.waits}
}
