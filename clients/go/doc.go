// Package sluice is the client of Sluice, a rate-limiting service with a fair queue.
//
// A [Client] asks for permission: at once ([Client.Check]), in the queue of a key ([Client.Wait]), or for as long as
// some work takes ([Client.Permit]). A [Transport] asks before each request of an http.Client.
//
// The zero value of each option is its default. Options that can be turned off take a constant for it, such as
// [NoRetries]; any negative value does the same.
//
// A denial is a [Decision] and not an error, except of a permit and of a [Transport]. See [RejectedError],
// [UnavailableError], [DeniedError] and [PermitLostError] for the errors.
//
// All methods take a context. If it ends, the call returns, and the client gives back what Sluice may have approved:
// it withdraws a wait, and releases an approval that arrives within 5 s. [Client.Close] waits for that.
package sluice
