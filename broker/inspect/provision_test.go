package inspect

import "testing"

func TestSubjectsNamesAFew(t *testing.T) {
	for _, test := range []struct {
		names []string
		want  string
	}{
		{[]string{"a"}, "a"},
		{[]string{"a", "b", "c"}, "a b c"},
		{[]string{"a", "b", "c", "d"}, "a b and 2 more subjects"},
	} {
		if got := subjects(test.names); got != test.want {
			t.Errorf("got %q, want %q", got, test.want)
		}
	}
}
