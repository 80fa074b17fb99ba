package lease

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
)

// shares says who should own each lane: evenly among at most so many instances, with the fewest moves from the present
// state. Every instance computes the same from the same table. A lane that no instance would work has no entry.
func shares(t Table, most int) map[string]string {
	would := make(map[string][]string) // who would work a lane
	members := t.members()
	for _, id := range members {
		for _, lane := range t.Instances[id].Lanes {
			would[lane] = append(would[lane], id)
		}
	}
	lanes := slices.SortedFunc(maps.Keys(would), func(a, b string) int {
		return cmp.Or(cmp.Compare(mixed(a), mixed(b)), cmp.Compare(a, b))
	})
	owned := make(map[string][]string)
	for _, lane := range lanes {
		if owner := t.Lanes[lane].Instance; slices.Contains(would[lane], owner) {
			owned[owner] = append(owned[owner], lane)
		}
	}

	// Those who own most stay owners. The order in which they joined decides what is equal.
	chosen := slices.DeleteFunc(members, func(id string) bool { return len(t.Instances[id].Lanes) == 0 })
	slices.SortStableFunc(chosen, func(a, b string) int { return cmp.Compare(len(owned[b]), len(owned[a])) })
	chosen = chosen[:min(len(chosen), most)]
	share, count := make(map[string]string, len(lanes)), make(map[string]int)
	if len(chosen) == 0 {
		return share
	}
	// An odd lane stays with those who have one. Who has more still has not given up what he should, and counts no more
	// than they: otherwise the odd lanes would change hands while others move.
	base, odd := len(lanes)/len(chosen), len(lanes)%len(chosen)
	rank := func(id string) int { return min(len(owned[id]), base+1) }
	slices.SortFunc(chosen, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(t.Instances[a].Joined, t.Instances[b].Joined),
			cmp.Compare(a, b))
	})
	for i, id := range chosen {
		quota := base
		if i < odd {
			quota++
		}
		for _, lane := range owned[id][:min(quota, len(owned[id]))] {
			share[lane] = id
			count[id]++
		}
	}
	for _, lane := range lanes {
		if share[lane] != "" {
			continue
		}
		able := slices.DeleteFunc(slices.Clone(would[lane]), func(id string) bool { return !slices.Contains(chosen, id) })
		if len(able) == 0 {
			able = would[lane] // only one of those that stand by would: in the middle of an upgrade
		}
		// Whom it belongs to already, if that makes no difference, so that two who are equal do not pass it to and fro.
		owner := t.Lanes[lane].Instance
		least := slices.MinFunc(able, func(a, b string) int {
			return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(stays(b == owner), stays(a == owner)))
		})
		share[lane] = least
		count[least]++
	}
	return share
}

// mixed orders lanes so that those of like names, which work alike, are not all given to one instance.
func mixed(lane string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(lane))
	return h.Sum32()
}

func stays(b bool) int {
	if b {
		return 1
	}
	return 0
}
