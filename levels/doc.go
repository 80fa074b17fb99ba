// Package levels is the arithmetic of delays: the notation of durations, the fixed delays (levels), and the sequence of
// levels through which a message passes until it is due. It uses no clock, no goroutine and no NATS.
//
// # The problem
//
// A stream in which every message waits equally long is a queue in the order of due times: its reader reads only the
// head, and a pending message takes no memory in the reader. A stream for each possible delay would be too many
// streams. So there are a few dozen streams of fixed delay, the levels. All levels together are the [Ladder]. Any other
// delay is composed of levels, the longest first:
//
//	1h47m12.3s ──▶ [90m] ──▶ [15m] ──▶ [2m] ──▶ [10s] ──▶ wheel 2.3s ──▶ due
//	remaining     1h47m     17m12s    2m12s    12.3s      2.3s
//
// Each level passed is a hop: one write and one purge. For the rest of the delay, which is shorter than the
// [Ladder.Horizon], the message waits in memory, on the wheel. This wait ends with millisecond precision.
//
// # Invariants
//
//   - No overshoot: [Ladder.Next] returns no level longer than the remaining time. The levels of a chain and the rest
//     on the wheel add up to the delay, to the nanosecond.
//   - In one ladder, the next level depends only on the remaining time, and the message carries its due time. Any
//     broker with any ladder can continue any chain, and levels can be added and removed while messages wait.
//   - Rounding up: [FormatDuration] never returns a shorter duration. To a positive duration it adds less than a
//     millisecond.
//   - No two levels are equally long: they would be one queue in two streams.
//
// # The ladder
//
// The default ladder has the eighteen levels of RocketMQ, for users who know them, and fourteen more:
//
//	1s 5s 10s 30s   1m 2m 3m 4m 5m 6m 7m 8m 9m 10m 20m 30m   1h 2h
//	3s 7s 20s 45s   15m 90m   4h 6h 12h   1d 2d 3d 7d 14d
//
// The table has the number of hops: mean and maximum for delays that are spread evenly over a range, and the mean for
// delays of whole minutes or hours. The intake does not count as a hop. The goals were means of at most 4 in 0–2h and
// of at most 8 in 0–30d, with at most 32 levels. The last row has the fewest hops that are possible with the default
// levels:
//
//	                     0–2h         0–30d       0–366d   minutes  hours
//	                     mean   max    mean   max    max    in 2h   in 30d
//	RocketMQ's 18        5.17    10  184.67   369   4401     2.57   180.00
//	short (8)            9.60    20   27.60    56    392     6.00    18.50
//	default (32)         3.93     6    7.90    13     37     2.28     4.47
//	default, optimum     3.93          7.89
//
//	go test -v -run TestHops ./levels
//
// # The horizon
//
// Most delays in use are round numbers, and many are exactly a level. In the chains of the other delays, the levels of
// seconds cause many of the hops. A wait of the last few seconds in memory is cheaper, and the wheel is bounded. So the
// horizon is the shortest level, but at least [MinHorizon]. 1s is still a level, for clients that publish directly to
// it, and for messages for which the wheel has no room.
//
// These ladders were tried, all with RocketMQ's eighteen levels and fourteen more. A search chose the fourteen among
// about thirty round durations (round), about fifty durations, not all of them round (few), or all whole numbers of
// each unit (any). The table has the mean hops. The searches were local, so a better ladder may exist.
//
//	horizon   levels                        0–2h   0–30d
//	1s        the default's                 4.73    8.70
//	1s        round                         4.40    8.84
//	1s        any: 18s 47s 97m 28h 64h ...  4.29    8.46
//	2s        the default's                 4.13    8.10
//	2s        round                         4.05    8.12
//	2s        any: 39s 43m 89m 13h 52h ...  3.90    7.75
//	2.5s      the default's                 4.03    8.00
//	2.5s      round                         3.96    8.03
//	2.5s      few: 18s 40s 50s 9h 36h ...   3.91    7.95
//	3s        the default's                 3.93    7.90
//	3s        any: 13s 44m 82m 14h 55h ...  3.79    7.43
//	5s        the default's                 3.70    7.67
//
// The cost grows with the horizon: more messages wait in memory, and a crash may repeat more deliveries. So the default
// is the smallest horizon, in steps of half a second, for which the search found round levels that meet both goals. A
// smaller horizon would need odd levels, such as 18s and 36h at 2.5s or 39s and 89m at 2s. A longer wait in memory is
// better than levels that no client requests by name. At 1s, even the best ladder of the search misses both goals. An
// operator can set a longer horizon: a ladder with 5s as the shortest level has means of 3.62 and 7.51 with 31 levels.
//
// # The rule
//
// The next level is always the longest level that fits (greedy). A binary search finds it, and a chain can be checked
// by hand. The alternative, the fewest hops from a table of all remaining seconds (coin change), was tried and
// rejected. On the default ladder it saves less than 0.3 %, but it needs a table of 2.6 million entries, and its chains
// cannot be checked by hand.
//
// # A millisecond short
//
// If a message reaches the broker a millisecond late, the level of its delay does not fit any more. This is the most
// expensive case: 2h is one hop, 2h-1ms is six hops (90m 20m 9m 45s 10s 3s), and 14d-1ms is twelve. But a loss
// of time has a bounded cost: a message with delay d never takes more hops than the maximum for all delays up to d.
// After a first level L, a remaining time r of at most d-L is left. If r is not below the horizon, the delay L+r, which
// is at most d, begins with the same L and needs as many hops.
//
// A broker avoids most of these hops: messages leave a level 50 ms before its end (the lookahead), which compensates
// for the time in the intake. A caller may also add a part of the lookahead to the remaining time. The table has the
// mean hops, and the time at which messages reach the wheel, if each move takes 0–20 ms:
//
//	added   a level's delay, via the intake  minutes in 2h   on the wheel
//	 0 ms   1.96 hops                        2.44            32 ms before due
//	25 ms   1.00                             2.29             7 ms before due
//	50 ms   1.00                             2.29            18 ms late
//
// So the caller should add half of the lookahead. With the whole lookahead, no time would remain for the move.
package levels
