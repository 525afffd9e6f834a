package sluice

import (
	"context"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// decided is how a wait has ended.
type decided struct {
	decision Decision
	err      error
}

// begin waits, and returns once the wait has its place.
func begin(ctx context.Context, t *testing.T, client *Client, key string) <-chan decided {
	t.Helper()
	place, end := make(chan Progress, 100), make(chan decided, 1)
	go func() {
		decision, err := client.Wait(ctx, key, WaitOptions{OnProgress: func(p Progress) { place <- p }})
		end <- decided{decision, err}
	}()
	receive(t, "the place of a wait", place)
	return end
}

func TestAWaitIsApprovedAfterARelease(t *testing.T) {
	for name, options := range map[string]Options{"in a kept place": {}, "in one request": {KeepPlace: NoKeep}} {
		t.Run(name, func(t *testing.T) {
			client, key := newClient(t, options), newKey(t, "")
			id := approve(t, client, key, CheckOptions{})
			end := make(chan decided, 1)
			go func() {
				decision, err := client.Wait(testContext(t), key, WaitOptions{})
				end <- decided{decision, err}
			}()
			until(t, "the wait", func() bool { return stateOf(t, key).NumWaiting == 1 })
			if _, err := client.Release(testContext(t), key, id); err != nil {
				t.Fatal(err)
			}
			got := receive(t, "the decision", end)
			if got.err != nil || !got.decision.Approved || len(got.decision.Quota) != 1 {
				t.Fatalf("got %+v and %v", got.decision, got.err)
			}
		})
	}
}

func TestAWaitSaysItsPlace(t *testing.T) {
	client, key, ctx := newClient(t, Options{}), newKey(t, ""), testContext(t)
	id := approve(t, client, key, CheckOptions{})
	var places []Progress
	decision, err := client.Wait(ctx, key, WaitOptions{OnProgress: func(progress Progress) {
		places = append(places, progress)
		if _, err := client.Release(ctx, key, id); err != nil {
			t.Error(err)
		}
	}})
	if err != nil || !decision.Approved || places[0].Position != 1 || places[0].Wait <= 0 {
		t.Fatalf("got %+v and %v after the places %v", decision, err, places)
	}
}

func TestAWaitThatWouldBeTooLongIsDenied(t *testing.T) {
	client, key := newClient(t, Options{}), newKey(t, "")
	approve(t, client, key, CheckOptions{})
	for _, longest := range []time.Duration{time.Minute, time.Nanosecond, NoWait} {
		decision, err := client.Wait(testContext(t), key, WaitOptions{MaxWait: longest})
		if err != nil || decision.Approved || decision.RetryAfter < time.Minute {
			t.Errorf("got %+v and %v with %v", decision, err, longest)
		}
	}
}

func TestAWaitWhoseContextEndsGivesUpItsPlace(t *testing.T) {
	for name, options := range map[string]Options{"a kept place": {}, "one request": {KeepPlace: NoKeep}} {
		t.Run(name, func(t *testing.T) {
			client, key := newClient(t, options), newKey(t, "")
			approve(t, client, key, CheckOptions{})
			gone := errors.New("the user has gone")
			ctx, cancel := context.WithCancelCause(testContext(t))
			end := make(chan error, 1)
			go func() {
				_, err := client.Wait(ctx, key, WaitOptions{})
				end <- err
			}()
			until(t, "the wait", func() bool { return stateOf(t, key).NumWaiting == 1 })
			cancel(gone)
			err := receive(t, "the end of the wait", end)
			var failure *UnavailableError
			if !errors.As(err, &failure) || !failure.MayHaveCounted || !errors.Is(err, context.Canceled) || !errors.Is(err, gone) {
				t.Errorf("got %v", err)
			}
			client.Close()
			if waiting := stateOf(t, key).NumWaiting; waiting != 0 {
				t.Errorf("%d wait", waiting)
			}
		})
	}
}

func TestAWaitOutlivesItsReplica(t *testing.T) {
	urls := strings.Split(os.Getenv("SLUICE_REPLICAS"), ",")
	pid, err := strconv.Atoi(os.Getenv("SLUICE_REPLICA_PID"))
	if err != nil || len(urls) < 2 {
		t.Skip("SLUICE_REPLICAS has no addresses, or SLUICE_REPLICA_PID is not the process of the first one")
	}
	other := newClient(t, Options{URLs: urls[1:]})
	client, key, ctx := newClient(t, Options{URLs: urls}), newKey(t, ""), testContext(t)
	id := approve(t, other, key, CheckOptions{})
	first := begin(ctx, t, client, key)
	second := begin(ctx, t, client, key)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	newcomer := begin(ctx, t, other, key)
	// Nobody is approved before its turn, since each approval counts until it is released.
	for index, end := range []<-chan decided{first, second, newcomer} {
		if _, err := other.Release(ctx, key, id); err != nil {
			t.Fatal(err)
		}
		got := receive(t, "the turn of the next wait", end)
		if got.err != nil || !got.decision.Approved {
			t.Fatalf("wait %d got %+v and %v", index, got.decision, got.err)
		}
		id = got.decision.RequestID
	}
}

func TestAWaitIsAChainOfRequestsWithOneID(t *testing.T) {
	sluice := newStandIn(t,
		says(http.StatusAccepted, placeBody),
		loses,
		fails(http.StatusServiceUnavailable, codeHandedOver),
		fails(http.StatusConflict, codePlaceTakenOver),
		says(http.StatusOK, approvedBody))
	client := newClient(t, Options{URLs: []string{sluice.url}, LongPoll: 1500 * time.Millisecond})
	decision, err := client.Wait(testContext(t), "a", WaitOptions{
		CheckOptions: CheckOptions{Hits: 2},
		MaxWait:      time.Minute,
		OnProgress:   func(Progress) {},
	})
	if err != nil || !decision.Approved {
		t.Fatalf("got %+v and %v", decision, err)
	}
	asked := sluice.asked(http.MethodPost)
	if len(asked) != 5 {
		t.Fatalf("%d requests", len(asked))
	}
	first := asked[0].URL.Query()
	for index, request := range asked {
		if request.URL.RawQuery != first.Encode() {
			t.Errorf("request %d asks %s", index, request.URL.RawQuery)
		}
		// The first one is answered at once, since somebody wants to know the place.
		want := "wait=2"
		if index == 0 {
			want = "wait=0"
		}
		if prefer := request.Header.Get("Prefer"); prefer != want {
			t.Errorf("request %d prefers %q", index, prefer)
		}
	}
	for name, want := range map[string]string{
		"canWait": "true", "hits": "2", "keepMillis": "30000", "maxWaitMillis": "60000",
	} {
		if got := first.Get(name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
}

func TestAWaitWhoseApprovalHasLapsedBeginsAgain(t *testing.T) {
	sluice := newStandIn(t, loses, fails(http.StatusConflict, codeRequestIDUsed), says(http.StatusOK, approvedBody))
	client := newClient(t, Options{URLs: []string{sluice.url}})
	if decision, err := client.Wait(testContext(t), "a", WaitOptions{}); err != nil || !decision.Approved {
		t.Fatalf("got %+v and %v", decision, err)
	}
	asked := sluice.asked(http.MethodPost)
	ids := [3]string{}
	for index, request := range asked {
		ids[index] = request.URL.Query().Get("requestId")
	}
	if ids[0] != ids[1] || ids[1] == ids[2] {
		t.Errorf("the ids are %v", ids)
	}
}

func TestAWaitInOneRequestIsSentAgainWithItsID(t *testing.T) {
	sluice := newStandIn(t, loses, says(http.StatusOK, approvedBody))
	client := newClient(t, Options{URLs: []string{sluice.url}, KeepPlace: NoKeep})
	if decision, err := client.Wait(testContext(t), "a", WaitOptions{}); err != nil || !decision.Approved {
		t.Fatalf("got %+v and %v", decision, err)
	}
	asked := sluice.asked(http.MethodPost)
	first, second := asked[0].URL.Query(), asked[1].URL.Query()
	if first.Has("keepMillis") || first.Get("requestId") == "" || first.Encode() != second.Encode() {
		t.Errorf("it asks %v and then %v", first, second)
	}
}

func TestAnIDThatSluiceDoesNotKnowIsWithdrawnTwice(t *testing.T) {
	place := make(chan Progress, 1)
	waits := func(w http.ResponseWriter, request *http.Request) {
		if request.Method == http.MethodDelete {
			fails(http.StatusNotFound, codeRequestNotFound)(w, request)
			return
		}
		if request.Header.Get("Prefer") == "wait=0" {
			says(http.StatusAccepted, placeBody)(w, request)
			return
		}
		<-request.Context().Done()
	}
	sluice := newStandIn(t, waits)
	client := newClient(t, Options{URLs: []string{sluice.url}})
	ctx, cancel := context.WithCancel(testContext(t))
	end := make(chan error, 1)
	go func() {
		_, err := client.Wait(ctx, "a", WaitOptions{OnProgress: func(p Progress) { place <- p }})
		end <- err
	}()
	receive(t, "the place", place)
	cancel()
	receive(t, "the end of the wait", end)
	client.Close()
	id := sluice.asked(http.MethodPost)[0].URL.Query().Get("requestId")
	withdrawn := sluice.asked(http.MethodDelete)
	if len(withdrawn) != 2 || withdrawn[0].URL.Path != "/rate/a/"+id || withdrawn[1].URL.Path != "/rate/a/"+id {
		t.Errorf("%d DELETEs", len(withdrawn))
	}
}

func TestAServiceThatKeepsPlacesForLessIsBelieved(t *testing.T) {
	tooLong := says(http.StatusForbidden,
		`{"error":"keepMillis must be at most 2000 for this key","code":"OVERRIDE_TOO_LARGE"}`)
	sluice := newStandIn(t, tooLong, says(http.StatusOK, approvedBody))
	client := newClient(t, Options{URLs: []string{sluice.url}})
	for range 2 {
		if decision, err := client.Wait(testContext(t), "a", WaitOptions{}); err != nil || !decision.Approved {
			t.Fatalf("got %+v and %v", decision, err)
		}
	}
	kept := ""
	for _, request := range sluice.asked(http.MethodPost) {
		kept += request.URL.Query().Get("keepMillis") + " "
	}
	if kept != "30000 2000 2000 " {
		t.Errorf("places were to be kept for %sms", kept)
	}
}

func TestAWaitGivesUpOnceItsPlaceHasLapsed(t *testing.T) {
	// It has counted nothing, but an earlier request may have.
	stopping := fails(http.StatusServiceUnavailable, codeShuttingDown)
	sluice := newStandIn(t, loses, stopping)
	client := newClient(t, Options{URLs: []string{sluice.url}, Retries: NoRetries, KeepPlace: 4 * time.Second})
	_, err := client.Wait(testContext(t), "a", WaitOptions{})
	var failure *UnavailableError
	if !errors.As(err, &failure) || failure.Code != codeShuttingDown || !failure.MayHaveCounted {
		t.Fatalf("got %v", err)
	}
	if asked := len(sluice.asked(http.MethodPost)); asked < 3 {
		t.Errorf("it has asked only %d times", asked)
	}
	client.Close()
	if len(sluice.asked(http.MethodDelete)) == 0 {
		t.Error("the id was not withdrawn")
	}
}

func TestAWaitGoesOnAtTheNextAddressIfOneIsSilent(t *testing.T) {
	silent := newStandIn(t, func(_ http.ResponseWriter, request *http.Request) { <-request.Context().Done() })
	other := newStandIn(t, says(http.StatusOK, approvedBody))
	client := newClient(t, Options{
		URLs: []string{silent.url, other.url}, LongPoll: time.Nanosecond, Timeout: 100 * time.Millisecond,
	})
	if decision, err := client.Wait(testContext(t), "a", WaitOptions{}); err != nil || !decision.Approved {
		t.Fatalf("got %+v and %v", decision, err)
	}
	before, after := silent.asked(http.MethodPost), other.asked(http.MethodPost)
	if len(before) != 1 || len(after) != 1 || before[0].URL.RawQuery != after[0].URL.RawQuery {
		t.Errorf("%d and %d requests", len(before), len(after))
	}
}
