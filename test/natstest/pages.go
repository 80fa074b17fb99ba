package natstest

import (
	"context"
	"encoding/json"
)

// Pages answers the questions for a list of streams with one page after the other.
type Pages struct {
	All     []string // the answers that are left
	Offsets []int    // that were asked for
}

// Ask takes the next page.
func (p *Pages) Ask(_ context.Context, _ string, request, answer any) error {
	p.Offsets = append(p.Offsets, request.(map[string]int)["offset"])
	page := p.All[0]
	p.All = p.All[1:]
	return json.Unmarshal([]byte(page), answer)
}
