package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

type answer struct {
	RequestID string `json:"request_id"`
	Error     string `json:"error"`
}

// call returns the status and the body. When ctx ends, the request is canceled, and its place in the queue is free.
func call(ctx context.Context, method, path string) (int, answer, error) {
	request, err := http.NewRequestWithContext(ctx, method, os.Getenv("SLUICE_URL")+path, nil)
	if err != nil {
		return 0, answer{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, answer{}, err
	}
	defer response.Body.Close()
	var body answer
	err = json.NewDecoder(response.Body).Decode(&body)
	return response.StatusCode, body, err
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 35*time.Second)
	defer cancel()
	status, body, err := call(ctx, "POST", "/rate/go?canWait=true&maxWaitMillis=30000&holdMillis=60000")
	if err != nil {
		log.Fatal(err)
	}
	if status != http.StatusOK {
		log.Fatalf("%d: %s", status, body.Error)
	}
	fmt.Println("at work")
	// Not ctx: a release has to arrive even if the work has used up its time.
	status, _, err = call(context.Background(), "DELETE", "/rate/go/"+body.RequestID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("released:", status)
}
