// Uses a generated client against a service, and prints as JSON what it got.
// Arguments: the address of the service, and a key with a maximum of 1.
package main

import (
	"context"
	"encoding/json"
	"log"
	"os"

	"generated-client/sluice"
)

var ctx = context.Background()

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func pointer[T any](value T) *T { return &value }

func main() {
	client := must(sluice.NewClientWithResponses(os.Args[1]))
	key := os.Args[2]

	first := must(must(client.CheckWithResponse(ctx, key, &sluice.CheckParams{})).JSON200.AsApproval())
	denied := must(client.CheckWithResponse(ctx, key, &sluice.CheckParams{CanWait: pointer(false)}))
	waiting := make(chan *sluice.CheckResponse)
	go func() {
		waiting <- must(client.CheckWithResponse(ctx, key, &sluice.CheckParams{CanWait: pointer(true)}))
	}()
	for waiters(client, key) != 1 {
	}
	released := must(client.ReleaseWithResponse(ctx, key, first.RequestId.String(), nil)).JSON200
	waited := <-waiting
	granted := must(waited.JSON200.AsApproval())

	elements := []sluice.CheckElement{}
	for _, name := range []string{"a", "b"} {
		element := sluice.CheckElement{Key: key + "-" + name, MaxRequests: pointer(5), Hits: pointer(2)}
		elements = append(elements, element)
	}
	checks := []any{}
	releases := []sluice.ReleaseElement{}
	for i, result := range *must(client.CheckManyWithResponse(ctx, nil, elements)).JSON200 {
		approved := must(result.AsCheckResult0())
		checks = append(checks, approved.Status)
		release := sluice.ReleaseElement{Key: elements[i].Key, RequestId: approved.RequestId.String()}
		releases = append(releases, release)
	}
	many := []any{}
	for _, result := range *must(client.ReleaseManyWithResponse(ctx, nil, releases)).JSON200 {
		many = append(many, must(result.AsReleaseResult0()).Status)
	}
	paused := must(client.PauseWithResponse(ctx, key, &sluice.PauseParams{PauseMillis: pointer(1000)}))

	must(0, json.NewEncoder(os.Stdout).Encode(map[string]any{
		"denied":      []any{denied.StatusCode(), denied.JSON429.Error},
		"released":    released.RequestId == first.RequestId,
		"waited":      []any{waited.StatusCode(), granted.RequestId != first.RequestId},
		"hits":        heldHits(client, key+"-held"),
		"pauseMillis": paused.JSON200.PauseMillis,
		"checks":      checks,
		"releases":    many,
	}))
}

func waiters(client *sluice.ClientWithResponses, key string) int {
	found := must(client.ShowInstanceWithResponse(ctx, key, nil)).JSON200
	return must(found.AsInstanceDetail()).NumWaiting
}

func heldHits(client *sluice.ClientWithResponses, key string) *int {
	params := sluice.CheckByGetParams{MaxRequests: pointer(9), Hits: pointer(2), HoldMillis: pointer(60_000)}
	id := must(must(client.CheckByGetWithResponse(ctx, key, &params)).JSON200.AsApproval()).RequestId
	terms := sluice.AmendParams{Hits: pointer(3), HoldMillis: pointer(90_000)}
	return must(client.AmendWithResponse(ctx, key, id.String(), &terms)).JSON200.Hits
}
