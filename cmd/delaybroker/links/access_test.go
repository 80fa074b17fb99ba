package links

import "testing"

func TestStripUsers(t *testing.T) {
	got, want := StripUsers("nats://me:s3cret@a:1, token@b:2"), "nats://a:1,nats://b:2"
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
