package sluice_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"

	sluice "sluice-client"
)

func newClient() *sluice.Client {
	client, err := sluice.New(sluice.Options{URLs: []string{os.Getenv("SLUICE_URL")}})
	if err != nil {
		log.Fatal(err)
	}
	return client
}

func ExampleClient_Check() {
	client, ctx := newClient(), context.Background()
	defer client.Close()
	first, err := client.Check(ctx, "example of a check", sluice.CheckOptions{MaxRequests: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("approved:", first.Approved)
	second, err := client.Check(ctx, "example of a check", sluice.CheckOptions{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("approved:", second.Approved)
	// The work has failed, so that others may have its approval.
	if _, err := client.Release(ctx, "example of a check", first.RequestID); err != nil {
		log.Fatal(err)
	}
	// Output:
	// approved: true
	// approved: false
}

func ExampleClient_Wait() {
	client, ctx := newClient(), context.Background()
	defer client.Close()
	first, err := client.Check(ctx, "example of a wait", sluice.CheckOptions{MaxRequests: 1})
	if err != nil {
		log.Fatal(err)
	}
	decision, err := client.Wait(ctx, "example of a wait", sluice.WaitOptions{
		MaxWait: 2 * time.Hour,
		OnProgress: func(progress sluice.Progress) {
			fmt.Println("position:", progress.Position)
			if _, err := client.Release(ctx, "example of a wait", first.RequestID); err != nil {
				log.Fatal(err)
			}
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("approved:", decision.Approved)
	if _, err := client.Release(ctx, "example of a wait", decision.RequestID); err != nil {
		log.Fatal(err)
	}
	// Output:
	// position: 1
	// approved: true
}

func ExampleClient_Permit() {
	client := newClient()
	defer client.Close()
	permit, err := client.Permit(context.Background(), "example of a permit", sluice.WaitOptions{
		MaxWait: time.Minute,
	})
	if err != nil {
		log.Fatal(err)
	}
	defer permit.Release()
	// The work stops if the permit is lost, since another caller may begin.
	select {
	case <-permit.Context().Done():
		log.Print(context.Cause(permit.Context()))
	case <-time.After(10 * time.Millisecond):
		fmt.Println("the work is done")
	}
	// Output: the work is done
}

func ExampleDeniedError() {
	client, ctx := newClient(), context.Background()
	defer client.Close()
	permit, err := client.Permit(ctx, "example of a denial", sluice.WaitOptions{})
	if err != nil {
		log.Fatal(err)
	}
	defer permit.Release()
	_, err = client.Permit(ctx, "example of a denial", sluice.WaitOptions{MaxWait: sluice.NoWait})
	var denied *sluice.DeniedError
	if errors.As(err, &denied) {
		fmt.Println("denied, with code", denied.Code)
	}
	// Output: denied, with code RATE_LIMIT_EXCEEDED
}

func ExampleTransport() {
	client := newClient()
	defer client.Close()
	// Each host has a queue of its own, and gets 100 requests in each window.
	limited := http.Client{Transport: &sluice.Transport{
		Client: client,
		Key:    func(request *http.Request) string { return "calls to " + request.URL.Host },
		Options: sluice.WaitOptions{
			CheckOptions: sluice.CheckOptions{MaxRequests: 100},
			MaxWait:      time.Minute,
		},
	}}
	response, err := limited.Get(os.Getenv("SLUICE_URL") + "/healthz")
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	fmt.Println(response.StatusCode)
	// Output: 200
}
