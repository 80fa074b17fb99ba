package natstest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// An Account is the account of an operator's server in which a test's broker and clients are users.
type Account struct {
	t        testing.TB
	operator nkeys.KeyPair
	pair     nkeys.KeyPair
	claims   *jwt.AccountClaims
	token    string // of a user without limits
	seed     []byte
}

// NewAccount returns an account with JetStream without limits, which change may change.
func NewAccount(t testing.TB, change func(*jwt.AccountClaims)) *Account {
	t.Helper()
	a := &Account{t: t}
	var err error
	a.operator, err = nkeys.CreateOperator()
	NoError(t, err)
	a.pair, err = nkeys.CreateAccount()
	NoError(t, err)
	id, err := a.pair.PublicKey()
	NoError(t, err)
	a.claims = jwt.NewAccountClaims(id)
	a.claims.Limits.JetStreamLimits = jwt.JetStreamLimits{MemoryStorage: -1, DiskStorage: -1, Streams: -1, Consumer: -1}
	change(a.claims)
	a.token, a.seed = a.NewUser(nil)
	return a
}

// NewUser returns the token and the seed of a user, which change may change.
func (a *Account) NewUser(change func(*jwt.UserClaims)) (token string, seed []byte) {
	a.t.Helper()
	pair, err := nkeys.CreateUser()
	NoError(a.t, err)
	id, err := pair.PublicKey()
	NoError(a.t, err)
	claims := jwt.NewUserClaims(id)
	if change != nil {
		change(claims)
	}
	token, err = claims.Encode(a.pair)
	NoError(a.t, err)
	seed, err = pair.Seed()
	NoError(a.t, err)
	return token, seed
}

// Options adds the account to a server.
func (a *Account) Options(o *server.Options) {
	a.t.Helper()
	id, err := a.operator.PublicKey()
	NoError(a.t, err)
	o.TrustedKeys = []string{id}
	resolver := &server.MemAccResolver{}
	pair, err := nkeys.CreateAccount()
	NoError(a.t, err)
	o.SystemAccount, err = pair.PublicKey() // JetStream needs one with accounts of an operator
	NoError(a.t, err)
	for _, claims := range []*jwt.AccountClaims{a.claims, jwt.NewAccountClaims(o.SystemAccount)} {
		token, err := claims.Encode(a.operator)
		NoError(a.t, err)
		NoError(a.t, resolver.Store(claims.Subject, token))
	}
	o.AccountResolver = resolver
}

// Change changes the claims of the account on a running server.
func (a *Account) Change(s *server.Server, change func(*jwt.AccountClaims)) {
	a.t.Helper()
	change(a.claims)
	account, err := s.LookupAccount(a.claims.Subject)
	NoError(a.t, err)
	s.UpdateAccountClaims(account, a.claims)
}

// User returns the option to connect as a user without limits.
func (a *Account) User() nats.Option { return nats.UserJWTAndSeed(a.token, string(a.seed)) }

// Credentials writes the credentials file of that user, and returns its path.
func (a *Account) Credentials() string {
	a.t.Helper()
	text, err := jwt.FormatUserConfig(a.token, a.seed)
	NoError(a.t, err)
	path := filepath.Join(a.t.TempDir(), "user.creds")
	NoError(a.t, os.WriteFile(path, text, 0o600))
	return path
}
