package links

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"delaybroker/broker/fault"
)

// login is the state of a link's login.
type login struct {
	rejection atomic.Pointer[error] // the server's rejection of the last login; nil without one
}

// isRejection reports whether the server rejected a user's credentials.
func isRejection(err error) bool {
	return errors.Is(err, nats.ErrAuthorization) || errors.Is(err, nats.ErrAuthExpired) ||
		errors.Is(err, nats.ErrAuthRevoked) || errors.Is(err, nats.ErrAccountAuthExpired)
}

// ErrConnections is returned when the account or the server allows fewer connections than a broker has links.
var ErrConnections = errors.New("too few connections are allowed")

// isFull reports whether the server refused a connection because of a limit of connections.
func isFull(err error) bool {
	return errors.Is(err, nats.ErrMaxAccountConnectionsExceeded) || errors.Is(err, nats.ErrMaxConnectionsExceeded)
}

func (l *login) reject(err error) { l.rejection.Store(&err) }

// rejected reports whether the server has rejected the last login, or has closed the connection because its credentials
// are no longer valid.
func (l *login) rejected() bool { return l.rejection.Load() != nil }

func (l *login) reset() { l.rejection.Store(nil) }

// fault returns why a link is not connected.
func (l *login) fault() fault.Fault {
	if err := l.rejection.Load(); err != nil {
		return fault.Fault{Cause: fault.Offline, Detail: "NATS rejects its credentials: " + (*err).Error(),
			Remedy: "correct the credentials, which the link reads again, or the user on the server"}
	}
	return fault.Fault{Cause: fault.Offline, Detail: "not connected",
		Remedy: "start the server; the broker then connects again"}
}

// delay returns the time until the next attempt, after the given number of rounds through all servers. An unreachable
// server is tried often, to detect its return early. A rejected login backs off: the server logs each rejection.
func (l *login) delay(rounds int) time.Duration {
	wait := reconnectWait
	if l.rejected() {
		wait = min(wait<<min(rounds, 10), maxBackoff)
	}
	return wait + rand.N(reconnectJitter)
}
