package terminal

import "testing"

func TestFigure(t *testing.T) {
	for n, want := range map[float64]string{
		0: "0.00", 1.234: "1.23", 12.34: "12.3", 123.6: "124", 12345.6: "12,346", -2: "-2.00",
	} {
		if got := Figure(n); got != want {
			t.Errorf("%v: got %q, want %q", n, got, want)
		}
	}
}
