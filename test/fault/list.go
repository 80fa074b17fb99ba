//go:build linux

package fault

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

type fault struct {
	name string
	// clean means that the fault excuses no duplicate.
	clean bool
	hold  time.Duration // the time between inject and heal
	extra time.Duration // the approximate duration of inject and heal
	// Random runs choose a rare fault, which takes long, a quarter as often as others. They never choose a separate fault.
	rare, separate bool
	minBrokers     int  // minimum number of brokers; 0 for any number
	replaces       bool // the fault replaces a lane's stream by another of the same name
	// inject starts the fault. It returns a function that ends the fault and returns the proof of its effect.
	inject func(*world) (heal func() (proof string, err error), err error)
}

// The faults. An instance that is silent for more than five seconds counts as dead, and another takes over.
var (
	brokerKilled    = fault{name: "broker killed", hold: 500 * time.Millisecond, extra: time.Second, inject: killBroker}
	brokerRestarted = fault{name: "broker killed and started at once", extra: time.Second, inject: killBroker}
	brokerLost      = fault{name: "broker killed for longer", hold: 8 * time.Second, inject: killBroker}
	ownersLost      = fault{name: "broker and bucket leader killed", hold: 8 * time.Second, minBrokers: 2,
		inject: killOwners}
	brokersKilled  = fault{name: "all brokers killed", hold: time.Second, extra: 4 * time.Second, inject: killBrokers}
	brokersRolling = fault{name: "brokers restarted in turn", clean: true, extra: 4 * time.Second, inject: rollBrokers}
	brokerStopped  = fault{name: "broker stopped for a while", clean: true, hold: time.Second, inject: stopBroker}
	brokerBlink    = fault{name: "broker paused shortly", hold: 1500 * time.Millisecond, inject: pauseBroker}
	brokerPaused   = fault{name: "broker paused", hold: 6 * time.Second, inject: pauseBroker}
	brokerCut      = fault{name: "broker cut off in silence", hold: 6 * time.Second, inject: cutBroker}
	brokerReset    = fault{name: "broker's connections dropped", hold: time.Second, inject: resetBroker}
	stoppedUnseen  = fault{name: "broker stopped behind a paused replica", extra: 3 * time.Second,
		inject: stopBehindReplica}

	leaderKilled = fault{name: "leader killed", hold: 2 * time.Second, extra: 2 * time.Second,
		inject: killLeader(target)}
	timersKilled = fault{name: "timers' leader killed", hold: time.Second, extra: 2 * time.Second,
		inject: killLeader(timers)}
	timersPaused  = fault{name: "timers' leader paused", hold: 6 * time.Second, inject: pauseLeader(timers)}
	serversKilled = fault{name: "all servers killed", hold: 500 * time.Millisecond, extra: 4 * time.Second,
		inject: killServers}
	allKilled    = fault{name: "everything killed", hold: 500 * time.Millisecond, extra: 8 * time.Second, inject: killAll}
	serverBlink  = fault{name: "leader paused shortly", hold: 1500 * time.Millisecond, inject: pauseLeader(target)}
	serverPaused = fault{name: "leader paused", hold: 6 * time.Second, inject: pauseLeader(target)}
	lanePaused   = fault{name: "intake's leader paused", hold: 7 * time.Second, inject: pauseLeader(intake)}
	laneStale    = fault{name: "intake's leader paused until its answers are stale", extra: 12 * time.Second, rare: true,
		inject: pauseUntilStale}
	laneGone = fault{name: "intake's leader paused for long", hold: 20 * time.Second, separate: true,
		inject: pauseLeader(intake)}
	serverCut = fault{name: "leader cut off in silence", hold: 6 * time.Second, inject: cutLeader}

	serversRolling = fault{name: "servers restarted in turn", extra: 5 * time.Second,
		inject: rollServers((*process).terminate)}
	serversCrash = fault{name: "servers killed in turn", extra: 5 * time.Second, inject: rollServers((*process).kill)}
	serversLame  = fault{name: "servers retired in turn", extra: 40 * time.Second, separate: true,
		inject: rollServers((*process).retire)}
	readerBlink = fault{name: "a reader's server killed for half a second", hold: 500 * time.Millisecond,
		extra: 3 * time.Second, inject: killConsumerServer}
	readersBlink = fault{name: "two readers' servers killed in a row", hold: blink, extra: 8 * time.Second,
		inject: killConsumerServers}
	readersLost = fault{name: "two readers' servers killed in a row and the second for longer", hold: 3 * time.Second,
		separate: true, inject: killConsumerServers}
	readerShort = fault{name: "a reader's server killed for a second", hold: time.Second, extra: 3 * time.Second,
		inject: killConsumerServer}
	readerLost = fault{name: "a reader's server killed for ten seconds", hold: 10 * time.Second, rare: true,
		inject: killConsumerServer}
	readerReborn = fault{name: "a reader's consumer created again under its name", extra: 20 * time.Second, separate: true,
		inject: reborn}
	readerGone = fault{name: "a reader's server killed for a minute", hold: time.Minute, separate: true,
		inject: killConsumerServer}

	steppedDown    = fault{name: "all leaders stepped down", hold: time.Second, extra: 3 * time.Second, inject: stepDown}
	timersRestless = fault{name: "timers' leader stepped down again and again", extra: 5 * time.Second,
		inject: stepDownTimers}
	storeFull = fault{name: "no room in the account", hold: 500 * time.Millisecond, extra: 5 * time.Second,
		inject: fillStore}
	storeFullLong = fault{name: "no room in the account for long", hold: 32 * time.Second, separate: true,
		inject: fillStoreForLong}
	laneReplaced = fault{name: "the intake's stream replaced", hold: time.Second, extra: 4 * time.Second, replaces: true,
		inject: replaceIntake}
	idsForged     = fault{name: "ids of hops forged", extra: 8 * time.Second, rare: true, inject: forgeIDs}
	tenantAttacks = fault{name: "a tenant attacks", clean: true, hold: 6 * time.Second, inject: attackByTenant}

	ownersPurged = fault{name: "bucket purged and a broker killed", hold: 8 * time.Second, minBrokers: 2,
		inject: purgeOwners}
	ownersDeleted = fault{name: "bucket deleted", hold: 8 * time.Second, minBrokers: 2, inject: deleteOwners}
	loneCut       = fault{name: "lone broker cut off and another comes", hold: 2 * time.Second, extra: 12 * time.Second,
		rare: true, minBrokers: 2, inject: cutLoneBroker}
	loneServerCut = fault{name: "lone broker's server cut off and another comes", hold: 2 * time.Second,
		extra: 14 * time.Second, rare: true, minBrokers: 2, inject: cutLoneServer}

	allFaults = []fault{
		brokerKilled, brokerRestarted, brokerLost, ownersLost, brokersKilled, brokersRolling, brokerStopped, brokerBlink,
		brokerPaused, brokerCut, brokerReset, stoppedUnseen, leaderKilled, timersKilled, timersPaused,
		serversKilled, allKilled, serverBlink,
		serverPaused, lanePaused, laneStale, laneGone, serverCut, serversRolling, serversCrash, serversLame, readerBlink,
		readersBlink, readersLost, readerShort, readerLost, readerReborn, readerGone, steppedDown, timersRestless, storeFull,
		storeFullLong,
		laneReplaced, idsForged, tenantAttacks, ownersPurged, ownersDeleted, loneCut, loneServerCut,
	}
)

func (f fault) weight() int {
	switch {
	case f.separate:
		return 0
	case f.rare:
		return 1
	default:
		return 4
	}
}

func faultsNamed(names []string) ([]fault, error) {
	var found []fault
	for _, name := range names {
		name = strings.TrimSpace(name)
		i := slices.IndexFunc(allFaults, func(f fault) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q", name)
		}
		found = append(found, allFaults[i])
	}
	return found, nil
}

func faultsFor(brokers int) []fault {
	return slices.DeleteFunc(slices.Clone(allFaults), func(f fault) bool { return brokers < f.minBrokers })
}
