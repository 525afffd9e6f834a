package sluice

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"sync"
	"testing"
	"time"
)

// longest is how long a test waits for an event that must come.
const longest = 30 * time.Second

// sluiceURL is the address of a Sluice with windows of an hour, one approval in each, and testdata/rules.yaml.
var sluiceURL = os.Getenv("SLUICE_URL")

func TestMain(m *testing.M) {
	if sluiceURL == "" {
		fmt.Fprintln(os.Stderr, "set SLUICE_URL to the address of a Sluice: clients/go/README.md has the command")
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// newClient returns a client that ends with the test. By default it asks the Sluice of the tests.
func newClient(t *testing.T, options Options) *Client {
	t.Helper()
	if options.URLs == nil {
		options.URLs = []string{sluiceURL}
	}
	client, err := New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// newKey returns a key that no other test has.
func newKey(t *testing.T, prefix string) string {
	t.Helper()
	id, err := newID()
	if err != nil {
		t.Fatal(err)
	}
	return prefix + id
}

// testContext ends if an event does not come.
func testContext(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), longest)
	t.Cleanup(cancel)
	return ctx
}

// approve takes an approval of a key.
func approve(t *testing.T, client *Client, key string, options CheckOptions) string {
	t.Helper()
	decision, err := client.Check(testContext(t), key, options)
	if err != nil || !decision.Approved {
		t.Fatalf("got %+v and %v instead of an approval", decision, err)
	}
	return decision.RequestID
}

// state is what Sluice shows of a key.
type state struct {
	NumApprovedThisWindow int
	NumWaiting            int
	Holders               []struct{ Holder string }
}

func stateOf(t *testing.T, key string) state {
	t.Helper()
	response, err := http.Get(sluiceURL + "/debug/" + url.PathEscape(key))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var read state
	if err := json.NewDecoder(response.Body).Decode(&read); err != nil {
		t.Fatal(err)
	}
	return read
}

// until returns once a condition holds.
func until(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(longest); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("it never came: %s", what)
		}
	}
}

// receive returns what comes from a channel.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case value := <-from:
		return value
	case <-time.After(longest):
		t.Fatalf("it never came: %s", what)
		panic("unreachable")
	}
}

// standIn answers as the test wants, in place of Sluice, and notes the requests.
type standIn struct {
	url string
	mu  sync.Mutex
	// requests are those so far.
	requests []*http.Request
}

// newStandIn answers the n-th request with the n-th answer, and all others with the last one.
func newStandIn(t *testing.T, answers ...http.HandlerFunc) *standIn {
	t.Helper()
	s := &standIn{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		s.mu.Lock()
		index := min(len(s.requests), len(answers)-1)
		s.requests = append(s.requests, request)
		s.mu.Unlock()
		answers[index](w, request)
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// asked returns the requests with a method.
func (s *standIn) asked(method string) []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*http.Request
	for _, request := range s.requests {
		if request.Method == method {
			found = append(found, request)
		}
	}
	return found
}

// says answers with a status and a body of JSON.
func says(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// fails answers with an error of Sluice.
func fails(status int, code string) http.HandlerFunc {
	return says(status, fmt.Sprintf(`{"error":"failed","code":%q}`, code))
}

// closes ends the connection with the answer, as a replica does that stops.
func closes(answer http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Connection", "close")
		answer(w, request)
	}
}

// loses closes the connection instead of an answer.
func loses(w http.ResponseWriter, _ *http.Request) {
	panic(http.ErrAbortHandler)
}

const (
	approvedBody = `{"request_id":"7dab271a-1d7d-4767-b793-454019b1beee"}`
	placeBody    = `{"position":1,"waitMillis":1000}`
)
