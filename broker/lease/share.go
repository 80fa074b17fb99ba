package lease

import (
	"cmp"
	"hash/fnv"
	"maps"
	"slices"
)

// shares returns the instance that should own each lane. It spreads the lanes evenly among at most maxOwners instances,
// with the fewest moves. Every instance computes the same shares from the same table. A lane that no instance can own
// has no entry.
func shares(t Table, maxOwners int) map[string]string {
	candidates := make(map[string][]string) // the instances that can own a lane
	members := t.members()
	for _, id := range members {
		for _, lane := range t.Instances[id].Lanes {
			candidates[lane] = append(candidates[lane], id)
		}
	}
	lanes := slices.SortedFunc(maps.Keys(candidates), func(a, b string) int {
		return cmp.Or(cmp.Compare(laneHash(a), laneHash(b)), cmp.Compare(a, b))
	})
	owned := make(map[string][]string)
	for _, lane := range lanes {
		if owner := t.Lanes[lane].Instance; slices.Contains(candidates[lane], owner) {
			owned[owner] = append(owned[owner], lane)
		}
	}

	// The instances that own the most lanes are chosen. Of two instances that own equally many, the one that joined
	// earlier is chosen.
	chosen := slices.DeleteFunc(members, func(id string) bool { return len(t.Instances[id].Lanes) == 0 })
	slices.SortStableFunc(chosen, func(a, b string) int { return cmp.Compare(len(owned[b]), len(owned[a])) })
	chosen = chosen[:min(len(chosen), maxOwners)]
	if len(chosen) == 0 {
		return nil
	}
	share, count := keepOwned(t, chosen, owned, len(lanes))
	for _, lane := range lanes {
		if share[lane] != "" {
			continue
		}
		eligible := slices.DeleteFunc(slices.Clone(candidates[lane]), func(id string) bool {
			return !slices.Contains(chosen, id)
		})
		if len(eligible) == 0 {
			eligible = candidates[lane] // during an upgrade, possibly no chosen instance can own the lane
		}
		// The instance with the fewest lanes gets the lane. If the current owner has equally few, it keeps the lane, so
		// that the lane does not move back and forth.
		owner := t.Lanes[lane].Instance
		best := eligible[0]
		for _, id := range eligible[1:] {
			if count[id] < count[best] || count[id] == count[best] && id == owner {
				best = id
			}
		}
		share[lane] = best
		count[best]++
	}
	return share
}

// keepOwned lets each chosen instance keep its lanes, up to an even share. It returns the owner of each of these lanes,
// and their number for each instance.
func keepOwned(t Table, chosen []string, owned map[string][]string, lanes int) (share map[string]string,
	count map[string]int) {
	share, count = make(map[string]string, lanes), make(map[string]int)
	// If the lanes do not divide evenly, the first instances of this order may keep base+1 lanes. An instance that owns
	// more lanes than base+1 has the rank base+1. So its rank stays the same when it releases lanes down to base+1, and
	// no further lane moves then.
	base, remainder := lanes/len(chosen), lanes%len(chosen)
	rank := func(id string) int { return min(len(owned[id]), base+1) }
	slices.SortFunc(chosen, func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(b), rank(a)), cmp.Compare(t.Instances[a].Joined, t.Instances[b].Joined),
			cmp.Compare(a, b))
	})
	for i, id := range chosen {
		quota := base
		if i < remainder {
			quota++
		}
		for _, lane := range owned[id][:min(quota, len(owned[id]))] {
			share[lane] = id
			count[id]++
		}
	}
	return share, count
}

// laneHash returns the hash by which lanes are sorted. Lanes with similar names often have similar load. The order of
// the hashes spreads such lanes over the instances.
func laneHash(lane string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(lane))
	return h.Sum32()
}
