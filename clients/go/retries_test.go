package sluice

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"
	"time"
)

// refusingURL is an address where nothing listens.
func refusingURL(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return fmt.Sprintf("http://%s", listener.Addr())
}

func TestACheckIsSentAgainOnlyIfItCanNotCountTwice(t *testing.T) {
	for name, c := range map[string]struct {
		answer http.HandlerFunc
		asked  int
		counts bool
	}{
		"store full":        {fails(http.StatusServiceUnavailable, codeStoreFull), 2, false},
		"shutting down":     {fails(http.StatusServiceUnavailable, codeShuttingDown), 2, false},
		"store unavailable": {fails(http.StatusServiceUnavailable, "STORE_UNAVAILABLE"), 1, true},
		"a proxy's error":   {says(http.StatusBadGateway, "<html>"), 1, true},
		"a proxy's page":    {says(http.StatusOK, "<html>"), 1, true},
		"a lost answer":     {loses, 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			sluice := newStandIn(t, c.answer)
			client := newClient(t, Options{URLs: []string{sluice.url}, Retries: 1})
			_, err := client.Check(testContext(t), "a", CheckOptions{})
			var failure *UnavailableError
			if !errors.As(err, &failure) || failure.MayHaveCounted != c.counts {
				t.Errorf("got %v", err)
			}
			if asked := len(sluice.asked(http.MethodPost)); asked != c.asked {
				t.Errorf("it was asked %d times", asked)
			}
		})
	}
}

func TestACallThatChangesNothingTwiceIsSentAgainAfterALostAnswer(t *testing.T) {
	sluice := newStandIn(t, loses, says(http.StatusOK, approvedBody))
	client := newClient(t, Options{URLs: []string{sluice.url}})
	if found, err := client.Release(testContext(t), "a", "b"); err != nil || !found {
		t.Errorf("got %v and %v", found, err)
	}
}

func TestTheNextAddressIsAskedIfOneIsUnreachableOrStops(t *testing.T) {
	stopping := newStandIn(t, closes(fails(http.StatusServiceUnavailable, codeShuttingDown)))
	closing := newStandIn(t, closes(says(http.StatusOK, approvedBody)))
	last := newStandIn(t, says(http.StatusOK, approvedBody))
	client := newClient(t, Options{
		URLs:    []string{refusingURL(t), stopping.url, closing.url, last.url},
		Retries: NoRetries,
	})
	for range 3 {
		approve(t, client, "a", CheckOptions{})
	}
	for index, want := range map[*standIn]int{stopping: 1, closing: 1, last: 2} {
		if asked := len(index.asked(http.MethodPost)); asked != want {
			t.Errorf("an address was asked %d times instead of %d", asked, want)
		}
	}
}

func TestOfSeveralFailuresOfAnAddressOneLeadsToTheNext(t *testing.T) {
	addresses, err := newAddresses([]string{"http://a/", "http://b", "http://c"})
	if err != nil {
		t.Fatal(err)
	}
	first := addresses.current()
	for range 2 {
		addresses.leave(first)
	}
	if got := addresses.current(); first != "http://a" || got != "http://b" {
		t.Errorf("got %s and then %s", first, got)
	}
}

func TestAnUnreachableSluiceHasCountedNothing(t *testing.T) {
	client := newClient(t, Options{URLs: []string{refusingURL(t)}, Retries: NoRetries})
	_, err := client.Check(testContext(t), "a", CheckOptions{})
	var failure *UnavailableError
	var cause *net.OpError
	if !errors.As(err, &failure) || failure.MayHaveCounted || failure.Status != 0 || !errors.As(err, &cause) {
		t.Fatalf("got %v", err)
	}
}

func TestAPauseThatWouldOutlastTheTimeoutIsNotBegun(t *testing.T) {
	busy := func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Retry-After", "60")
		fails(http.StatusServiceUnavailable, codeStoreFull)(w, request)
	}
	sluice := newStandIn(t, busy)
	client := newClient(t, Options{URLs: []string{sluice.url}})
	_, err := client.Check(testContext(t), "a", CheckOptions{})
	var failure *UnavailableError
	if !errors.As(err, &failure) || failure.RetryAfter != time.Minute || failure.Code != codeStoreFull {
		t.Fatalf("got %v", err)
	}
	if asked := len(sluice.asked(http.MethodPost)); asked != 1 {
		t.Errorf("it was asked %d times", asked)
	}
}

func TestAnApprovalWhoseCallerHasLeftIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(context.Context) (context.Context, context.CancelFunc)
		// It does not pass before the check has arrived.
		timeout time.Duration
	}{
		"by its context": {context.WithCancel, longest},
		"by the timeout": {
			func(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }, 3 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			arrived, answers := make(chan struct{}), make(chan struct{})
			sluice := newStandIn(t, func(w http.ResponseWriter, request *http.Request) {
				if request.Method == http.MethodPost {
					close(arrived)
					<-answers
				}
				says(http.StatusOK, approvedBody)(w, request)
			})
			client := newClient(t, Options{URLs: []string{sluice.url}, Timeout: c.timeout})
			ctx, cancel := c.leave(testContext(t))
			defer cancel()
			end := make(chan error, 1)
			go func() {
				_, err := client.Check(ctx, "a", CheckOptions{})
				end <- err
			}()
			receive(t, "the check", arrived)
			cancel()
			err := receive(t, "the end of the check", end)
			var failure *UnavailableError
			isEnd := errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
			if !errors.As(err, &failure) || !failure.MayHaveCounted || !isEnd {
				t.Errorf("got %v", err)
			}
			close(answers)
			client.Close()
			if released := sluice.asked(http.MethodDelete); len(released) != 1 {
				t.Errorf("it was released %d times", len(released))
			}
		})
	}
}

func TestACallWhoseContextHasEndedIsNotSent(t *testing.T) {
	sluice := newStandIn(t, says(http.StatusOK, approvedBody))
	ctx, cancel := context.WithCancel(testContext(t))
	cancel()
	_, err := newClient(t, Options{URLs: []string{sluice.url}}).Check(ctx, "a", CheckOptions{})
	var failure *UnavailableError
	if !errors.As(err, &failure) || failure.MayHaveCounted || len(sluice.asked(http.MethodPost)) != 0 {
		t.Errorf("got %v", err)
	}
}
