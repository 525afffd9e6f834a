package sluice

import (
	"net/http"
	"testing"
	"time"
)

func TestAWaitThatFailsPausesOnceEachAddressWasAsked(t *testing.T) {
	handedOver := &UnavailableError{Status: http.StatusServiceUnavailable, Code: codeHandedOver, MayHaveCounted: true}
	lost := &UnavailableError{isLost: true, MayHaveCounted: true}
	storeDown := &UnavailableError{
		Status: http.StatusServiceUnavailable, MayHaveCounted: true, RetryAfter: time.Second,
	}
	for name, c := range map[string]struct {
		failure   *UnavailableError
		addresses int
		pauses    []time.Duration
	}{
		"a lost answer":               {lost, 1, []time.Duration{firstPause, 3 * firstPause, 9 * firstPause}},
		"a lost answer of two":        {lost, 2, []time.Duration{0, firstPause, 0, 3 * firstPause}},
		"a replica behind an address": {handedOver, 1, []time.Duration{0, firstPause, 0, 3 * firstPause}},
		"a store that is down":        {storeDown, 2, []time.Duration{time.Second, time.Second}},
	} {
		retries := keptRetries{keep: 30 * time.Second, most: 3, addresses: c.addresses}
		for index, want := range c.pauses {
			got, again := retries.after(c.failure, time.Now())
			if most := want + want/5; !again || got < want || got > most {
				t.Errorf("%s: pause %d is %v, not %v to %v", name, index, got, want, most)
			}
		}
	}
}

func TestAWaitThatFailsGoesOnWhileItsPlaceMayBeKept(t *testing.T) {
	begun := time.Now()
	for name, c := range map[string]struct {
		hasPlace bool
		after    time.Duration
		again    bool
	}{
		"while its place may be kept": {true, 25 * time.Second, true},
		"once its place has lapsed":   {true, 30 * time.Second, false},
		"without a place":             {false, 25 * time.Second, false},
	} {
		failure := &UnavailableError{isLost: true, MayHaveCounted: c.hasPlace}
		retries := keptRetries{keep: 30 * time.Second, most: 1, addresses: 1}
		retries.after(failure, begun)
		if _, again := retries.after(failure, begun.Add(c.after)); again != c.again {
			t.Errorf("%s: it is sent again: %v", name, again)
		}
		retries.placed()
		if _, again := retries.after(failure, begun.Add(time.Hour)); !again {
			t.Errorf("%s: it is not sent again after the first failure since an answer", name)
		}
	}
}

// newWaitFor returns a wait that began so long ago.
func newWaitFor(t *testing.T, ago time.Duration, options WaitOptions) *keptWait {
	t.Helper()
	wait, err := newClient(t, Options{}).newKeptWait("a", options, 30*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	wait.begunAt = time.Now().Add(-ago)
	return wait
}

func TestAWaitWhoseTimeIsOverEndsItsPlace(t *testing.T) {
	for ago, want := range map[time.Duration]string{30 * time.Second: "60000", time.Minute: "0"} {
		wait := newWaitFor(t, ago, WaitOptions{MaxWait: time.Minute})
		if got := wait.query().Get("maxWaitMillis"); got != want {
			t.Errorf("after %v, maxWaitMillis is %s", ago, got)
		}
	}
	wait := newWaitFor(t, 58500*time.Millisecond, WaitOptions{MaxWait: time.Minute})
	if got := wait.nextWait(); got != 2*time.Second {
		t.Errorf("the last request takes %v", got)
	}
}

func TestAWaitIsShorterOnceTwoRequestsInARowWereCut(t *testing.T) {
	cut := &UnavailableError{isLost: true}
	stopped := &UnavailableError{Status: http.StatusServiceUnavailable}
	wait := newWaitFor(t, 0, WaitOptions{})
	for _, c := range []struct {
		failure *UnavailableError
		lasted  time.Duration
		want    time.Duration
	}{
		{cut, 10 * time.Second, 25 * time.Second},
		{stopped, 10 * time.Second, 25 * time.Second},
		{cut, 10 * time.Second, 25 * time.Second},
		{cut, time.Millisecond, 25 * time.Second},
		{cut, 10 * time.Second, 25 * time.Second},
		{cut, 10 * time.Second, 5 * time.Second},
		{cut, 1500 * time.Millisecond, time.Second},
	} {
		wait.shorten(c.failure, c.lasted)
		if got := wait.nextWait(); got != c.want {
			t.Errorf("after a request of %v, the next one takes %v, not %v", c.lasted, got, c.want)
		}
	}
}
