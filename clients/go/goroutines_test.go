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
	var callers sync.WaitGroup
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	for range 20 {
		callers.Add(3)
		go func() {
			defer callers.Done()
			// One of them gets the permit, and the others wait until the context ends.
			permit, err := client.Permit(ctx, key, WaitOptions{})
			if err != nil {
				return
			}
			<-permit.Context().Done()
			permit.Release()
		}()
		go func() {
			defer callers.Done()
			decision, _ := client.Wait(ctx, key, WaitOptions{OnProgress: func(Progress) {}})
			// It may get the turn of the permit, which is released as the context ends.
			if decision.Approved {
				_, _ = client.Release(context.WithoutCancel(ctx), key, decision.RequestID)
			}
		}()
		go func() {
			defer callers.Done()
			short, cancel := context.WithTimeout(ctx, time.Millisecond)
			defer cancel()
			_, _ = client.Check(short, newKey(t, ""), CheckOptions{})
		}()
	}
	callers.Wait()
	client.Close()
	if got := stateOf(t, key); got.NumApprovedThisWindow != 0 || got.NumWaiting != 0 {
		t.Errorf("Sluice has %+v", got)
	}
	http.DefaultClient.CloseIdleConnections()
	until(t, "the end of all goroutines", func() bool { return runtime.NumGoroutine() <= before })
}
