package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"os"
	"time"
)

// mostFailures is how many requests in a row may fail before a wait gives up.
const mostFailures = 5

type answer struct {
	RequestID string `json:"request_id"`
	Position  int    `json:"position"`
	Error     string `json:"error"`
}

// newID makes a UUID of version 4.
func newID() string {
	id := make([]byte, 16)
	rand.Read(id)
	id[6] = id[6]&0x0f | 0x40
	id[8] = id[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// call returns the status and the body. It waits up to 30 s for the answer.
func call(ctx context.Context, method, path string) (int, answer, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, os.Getenv("SLUICE_URL")+path, nil)
	if err != nil {
		return 0, answer{}, err
	}
	request.Header.Set("Prefer", "wait=25")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, answer{}, err
	}
	defer response.Body.Close()
	var body answer
	err = json.NewDecoder(response.Body).Decode(&body)
	return response.StatusCode, body, err
}

// wait asks until it is the turn of the id. Its requests have one id, so that they keep one place in the queue.
func wait(ctx context.Context, key, id string) error {
	path := "/rate/" + key + "?canWait=true&keepMillis=30000&holdMillis=60000&requestId=" + id
	for failures := 0; ; {
		status, body, err := call(ctx, "POST", path)
		switch {
		case err == nil && status == http.StatusOK && body.RequestID == id:
			return nil
		case err == nil && status == http.StatusAccepted:
			failures = 0
			log.Printf("position %d", body.Position)
			continue
		case err == nil:
			err = fmt.Errorf("%d: %s", status, body.Error)
		}
		failures++
		if status == http.StatusTooManyRequests || failures == mostFailures || ctx.Err() != nil {
			return err
		}
		time.Sleep(time.Second)
	}
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	id := newID()
	waited := wait(ctx, "go", id)
	if waited == nil {
		fmt.Println("at work")
	}
	// Also after a wait that has failed, and not with ctx: neither a place nor an approval must be left.
	status, _, err := call(context.Background(), "DELETE", "/rate/go/"+id)
	if waited != nil {
		log.Fatal(waited)
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("released:", status)
}
