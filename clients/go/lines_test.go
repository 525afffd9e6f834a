package sluice

import (
	"context"
	"errors"
	"net/http"
	"testing"
)

func TestChecksInFlightAreBounded(t *testing.T) {
	answers := make(chan struct{})
	sluice := newStandIn(t, func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodPost && !request.URL.Query().Has("canWait") {
			<-answers
		}
		says(http.StatusOK, approvedBody)(w, request)
	})
	client, ctx := newClient(t, Options{URLs: []string{sluice.url}, Timeout: longest}), testContext(t)
	checking := make(chan decided, mostInFlight+1)
	check := func() {
		decision, err := client.Check(ctx, "a", CheckOptions{})
		checking <- decided{decision, err}
	}
	for range mostInFlight {
		go check()
	}
	until(t, "all checks that may be in flight", func() bool { return len(sluice.asked(http.MethodPost)) == mostInFlight })
	go check()
	leaving, leave := context.WithCancel(ctx)
	left := make(chan error, 1)
	go func() {
		_, err := client.Check(leaving, "a", CheckOptions{})
		left <- err
	}()
	if found, err := client.Release(ctx, "a", "b"); err != nil || !found {
		t.Errorf("a release got %v and %v", found, err)
	}
	if decision, err := client.Wait(ctx, "a", WaitOptions{}); err != nil || !decision.Approved {
		t.Errorf("a wait got %+v and %v", decision, err)
	}
	leave()
	var failure *UnavailableError
	if err := receive(t, "the end of the check in the line", left); !errors.As(err, &failure) || failure.MayHaveCounted {
		t.Errorf("a check in the line got %v, and may have counted", err)
	}
	if asked := len(sluice.asked(http.MethodPost)); asked != mostInFlight+1 {
		t.Errorf("%d checks and waits were sent", asked)
	}
	close(answers)
	for range mostInFlight + 1 {
		if got := receive(t, "the answer to a check", checking); got.err != nil || !got.decision.Approved {
			t.Errorf("got %+v and %v", got.decision, got.err)
		}
	}
}
