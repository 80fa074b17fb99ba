package spelling

import "testing"

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
