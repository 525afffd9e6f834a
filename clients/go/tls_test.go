package sluice

import (
	"crypto/tls"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestTheCertificateOfSluiceIsVerified(t *testing.T) {
	server := httptest.NewUnstartedServer(says(http.StatusOK, approvedBody))
	// A handshake fails.
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	client := newClient(t, Options{URLs: []string{server.URL}, Retries: NoRetries})
	_, err := client.Check(testContext(t), "a", CheckOptions{})
	var failure *UnavailableError
	var wrong *tls.CertificateVerificationError
	if !errors.As(err, &failure) || failure.MayHaveCounted || !errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}
	transport := server.Client().Transport
	approve(t, newClient(t, Options{URLs: []string{server.URL}, Transport: transport}), "a", CheckOptions{})
}
