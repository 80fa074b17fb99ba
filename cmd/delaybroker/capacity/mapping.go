package capacity

import (
	"fmt"
	"strings"
)

// MaxFleets is the maximum number of fleets behind one mapping: nats-server's weights are whole percentages.
const MaxFleets = 100

// A Mapping is a mapping with weights of an account, which divides the messages of one subject among fleets.
type Mapping struct {
	Subject      string        `json:"subject"`
	Destinations []Destination `json:"destinations"`
}

// A Destination receives a percentage of the messages.
type Destination struct {
	Subject string `json:"destination"`
	Weight  int    `json:"weight"` // in percent
}

// FleetPrefix returns the prefix of the fleet with a number, which counts from 1.
func FleetPrefix(prefix string, number int) string { return fmt.Sprint(prefix, number) }

// Mappings returns the mappings that divide the messages below a prefix evenly among fleets. Timers are not divided:
// all messages about one timer must reach the same fleet.
func Mappings(prefix string, fleets int) (all []Mapping) {
	for _, form := range []string{"", "in", "at"} {
		m := Mapping{Subject: prefix + form + ".*.>"}
		for n := range fleets {
			m.Destinations = append(m.Destinations, Destination{
				Subject: FleetPrefix(prefix, n+1) + form + ".$1.>", Weight: 100*(n+1)/fleets - 100*n/fleets,
			})
		}
		all = append(all, m)
	}
	return all
}

// FormatMappings returns the mappings as a block of nats-server's configuration, for an account or for a server without
// accounts.
func FormatMappings(all []Mapping) string {
	var b strings.Builder
	b.WriteString("mappings: {\n")
	for _, m := range all {
		fmt.Fprintf(&b, "  %q: [\n", m.Subject)
		for _, d := range m.Destinations {
			fmt.Fprintf(&b, "    { destination: %q, weight: %d }\n", d.Subject, d.Weight)
		}
		b.WriteString("  ]\n")
	}
	b.WriteString("}\n")
	return b.String()
}
