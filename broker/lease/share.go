package lease

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
)

// shares returns the instance that should own each lane. It spreads the lanes evenly among at most the given number of
// instances, with the fewest moves. Every instance computes the same shares from the same table. A lane that no
// instance can own has no entry.
func shares(t Table, most int) map[string]string {
	would := make(map[string][]string) // the instances that can own a lane
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

	// The instances with the most lanes stay owners. Among equals, the one that joined earlier does.
	chosen := slices.DeleteFunc(members, func(id string) bool { return len(t.Instances[id].Lanes) == 0 })
	slices.SortStableFunc(chosen, func(a, b string) int { return cmp.Compare(len(owned[b]), len(owned[a])) })
	chosen = chosen[:min(len(chosen), most)]
	share, count := keep(t, chosen, owned, len(lanes))
	if len(chosen) == 0 {
		return share
	}
	for _, lane := range lanes {
		if share[lane] != "" {
			continue
		}
		able := slices.DeleteFunc(slices.Clone(would[lane]), func(id string) bool { return !slices.Contains(chosen, id) })
		if len(able) == 0 {
			able = would[lane] // during an upgrade, only instances that stand by may be able to own it
		}
		// Among equals the current owner keeps it, so that equal instances do not pass it back and forth.
		owner := t.Lanes[lane].Instance
		least := slices.MinFunc(able, func(a, b string) int {
			return cmp.Or(cmp.Compare(count[a], count[b]), cmp.Compare(stays(b == owner), stays(a == owner)))
		})
		share[lane] = least
		count[least]++
	}
	return share
}

// keep leaves each chosen instance its own lanes, up to an even share. It returns the owner of each lane and the number
// of lanes of each instance.
func keep(t Table, chosen []string, owned map[string][]string, lanes int) (share map[string]string,
	count map[string]int) {
	share, count = make(map[string]string, lanes), make(map[string]int)
	if len(chosen) == 0 {
		return share, count
	}
	// If the lanes do not divide evenly, the instances that already have one lane more keep it. An instance with still
	// more lanes has not released its surplus yet, and ranks no higher. Otherwise these lanes would move while other
	// lanes move.
	base, odd := lanes/len(chosen), lanes%len(chosen)
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
	return share, count
}

// mixed orders lanes by a hash. Lanes with similar names often have similar load, and so go to different instances.
func mixed(lane string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(lane))
	return h.Sum32()
}

// stays returns one for the current owner, and zero for others.
func stays(b bool) int {
	if b {
		return 1
	}
	return 0
}
