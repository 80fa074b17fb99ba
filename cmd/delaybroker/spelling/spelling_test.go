package spelling

import "testing"

func TestDistance(t *testing.T) {
	for _, test := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "abd", 1},
		{"abc", "ac", 1}, {"ac", "abc", 1}, {"levles", "levels", 2}, {"kitten", "sitting", 3},
	} {
		if got := distance(test.a, test.b); got != test.want {
			t.Errorf("distance of %q and %q: got %d, want %d", test.a, test.b, got, test.want)
		}
	}
}

func TestNearest(t *testing.T) {
	known := []string{"every", "cron", "target"}
	for name, want := range map[string]string{
		"evry": "every", "corn": "cron", "Target": "target", "colour": "", "": "", "tarxxx": "target", "taxxxx": "",
	} {
		if got := Nearest(name, known); got != want {
			t.Errorf("nearest to %q: got %q, want %q", name, got, want)
		}
	}
}
