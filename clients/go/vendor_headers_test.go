package sluice

import (
	"encoding/json"
	"net/http"
	"os"
	"reflect"
	"testing"
	"time"
)

// vendorCases are what all clients read.
type vendorCases struct {
	Now     time.Time
	Answers []struct {
		Title   string
		Headers map[string]string
		Says    []struct {
			Unit        string
			Remaining   int64
			ResetMillis int64
		}
	}
	Retries []struct {
		Status  int
		Headers map[string]string
		Millis  int64
	}
	Unreadable struct{ Remaining, Reset []string }
}

var unitNames = map[string]unit{
	"requests": unitRequests, "tokens": unitTokens, "inputTokens": unitInputTokens, "outputTokens": unitOutputTokens,
}

func readVendorCases(t *testing.T) vendorCases {
	t.Helper()
	text, err := os.ReadFile("../../test/support/client/vendor-headers.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases vendorCases
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	return cases
}

func headerOf(values map[string]string) http.Header {
	header := http.Header{}
	for name, value := range values {
		header.Set(name, value)
	}
	return header
}

func TestHeadersOfVendorsAreRead(t *testing.T) {
	cases := readVendorCases(t)
	for _, c := range cases.Answers {
		var want []vendorRemaining
		for _, said := range c.Says {
			want = append(want, vendorRemaining{unitNames[said.Unit], said.Remaining, durationOf(said.ResetMillis)})
		}
		if got := remainingIn(headerOf(c.Headers), cases.Now); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v instead of %+v", c.Title, got, want)
		}
	}
}

func TestTimesToRetryAreRead(t *testing.T) {
	cases := readVendorCases(t)
	for _, c := range cases.Retries {
		answer := &http.Response{StatusCode: c.Status, Header: headerOf(c.Headers)}
		if got := timeToRetry(answer, cases.Now); got != durationOf(c.Millis) {
			t.Errorf("got %v of %v", got, c)
		}
	}
}

func TestUnreadableHeadersOfVendorsAreIgnored(t *testing.T) {
	cases := readVendorCases(t)
	for _, text := range cases.Unreadable.Remaining {
		header := headerOf(map[string]string{"X-RateLimit-Remaining": text, "X-RateLimit-Reset": "5"})
		if got := remainingIn(header, cases.Now); got != nil {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
	for _, text := range cases.Unreadable.Reset {
		header := headerOf(map[string]string{"X-RateLimit-Remaining": "3", "X-RateLimit-Reset": text})
		want := []vendorRemaining{{unitRequests, 3, 0}}
		if got := remainingIn(header, cases.Now); !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as %+v", text, got)
		}
	}
}
