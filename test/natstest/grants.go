package natstest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// A Grant is one subject in the permissions of a user: an allowed or a denied subject.
type Grant struct {
	User    string
	List    string // "publish", "deny publish", "subscribe" or "deny subscribe"
	Subject string
}

func (g Grant) String() string { return fmt.Sprintf("%s of %s: %s", g.List, g.User, g.Subject) }

// Grants returns all grants of one user in a server's configuration file.
func Grants(t testing.TB, file, user string) []Grant {
	t.Helper()
	var all []Grant
	for name, list := range lists(find(t, optionsIn(t, file), user)) {
		for _, subject := range *list {
			all = append(all, Grant{user, name, subject})
		}
	}
	if len(all) == 0 {
		t.Fatalf("%s grants %s nothing", file, user)
	}
	slices.SortFunc(all,
		func(a, b Grant) int { return slices.Compare([]string{a.List, a.Subject}, []string{b.List, b.Subject}) })
	return all
}

// Options reads a server's configuration file, removes these grants, and adds a user with all rights: see [AdminLogin].
func Options(t testing.TB, file string, without ...Grant) server.Options {
	t.Helper()
	opts := optionsIn(t, file)
	for _, g := range without {
		list := lists(find(t, opts, g.User))[g.List]
		before := len(*list)
		*list = slices.DeleteFunc(*list, func(subject string) bool { return subject == g.Subject })
		if len(*list) == before {
			t.Fatalf("%s does not say %s", file, g)
		}
		if len(*list) == 0 && (g.List == "publish" || g.List == "subscribe") {
			*list = []string{"nothing"} // an empty list would allow everything
		}
	}
	opts.Users = append(opts.Users, &server.User{Username: adminUser, Password: adminUser})
	return *opts
}

const adminUser = "admin"

// AdminLogin returns the connection option with the name and the password of the user that Options adds.
func AdminLogin() nats.Option { return nats.UserInfo(adminUser, adminUser) }

func optionsIn(t testing.TB, file string) *server.Options {
	t.Helper()
	opts, err := server.ProcessConfigFile(file)
	NoError(t, err)
	return opts
}

func find(t testing.TB, opts *server.Options, user string) *server.Permissions {
	t.Helper()
	for _, u := range opts.Users {
		if u.Username == user && u.Permissions != nil {
			return u.Permissions
		}
	}
	t.Fatalf("no user %s with permissions", user)
	return nil
}

func lists(p *server.Permissions) map[string]*[]string {
	all := make(map[string]*[]string)
	if p.Publish != nil {
		all["publish"], all["deny publish"] = &p.Publish.Allow, &p.Publish.Deny
	}
	if p.Subscribe != nil {
		all["subscribe"], all["deny subscribe"] = &p.Subscribe.Allow, &p.Subscribe.Deny
	}
	return all
}
