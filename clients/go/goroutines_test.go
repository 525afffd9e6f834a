package sluice

import (
	"context"
	"net/http"
	"runtime"
	"sync"
	"testing"
	"time"
)

func TestNoGoroutineIsLeft(t *testing.T) {
	key := newKey(t, "")
	http.DefaultClient.CloseIdleConnections()
	before := runtime.NumGoroutine()
	client, err := New(Options{URLs: []string{sluiceURL}})
	if err != nil {
		t.Fatal(err)
	}
	const each = 20
	var callers sync.WaitGroup
	ctx, cancel := context.WithCancel(testContext(t))
	first, err := client.Permit(ctx, key, WaitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for range each {
		callers.Add(3)
		go func() {
			defer callers.Done()
			if permit, err := client.Permit(ctx, key, WaitOptions{}); err == nil {
				<-permit.Context().Done()
				permit.Release()
			}
		}()
		go func() {
			defer callers.Done()
			// It may get the turn of a permit that is released as the context ends.
			if decision, err := client.Wait(ctx, key, WaitOptions{}); err == nil {
				_, _ = client.Release(context.WithoutCancel(ctx), key, decision.RequestID)
			}
		}()
		go func() {
			defer callers.Done()
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_, _ = client.Check(short, key+" of a check", CheckOptions{})
		}()
	}
	until(t, "all waits", func() bool { return stateOf(t, key).NumWaiting == 2*each })
	cancel()
	first.Release()
	callers.Wait()
	client.Close()
	if got := stateOf(t, key); got.NumApprovedThisWindow != 0 || got.NumWaiting != 0 {
		t.Errorf("Sluice has %+v", got)
	}
	http.DefaultClient.CloseIdleConnections()
	until(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before })
}
