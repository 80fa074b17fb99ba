// Package page serves the page: the state of the fleet in a browser, or with curl, and actions on it.
//
//	GET  /                  the page; plain text for clients that do not ask for HTML
//	GET  /assets/…          its parts, all embedded: no request leaves the host
//	GET  /api/events        server-sent events: the state each second, the last hour, the forecast, the count of findings
//	GET  /api/history       deliveries, refusals, lateness and pending messages of the last hour or day
//	GET  /api/ahead         the number of messages due in the next hour, or seven days
//	GET  /api/findings      the findings of package doctor
//	GET  /api/pending …     rows: messages, timers, dead letters, targets; /api/find searches all of them
//	GET  /api/content       headers and body of one message
//	POST /api/plan          counts the objects of an action
//	POST /api/act           carries out a plan
//
// # One producer
//
//	viewer ◀─┐
//	viewer ◀─┼── frames ◀── produce ──┬── Engine.Status             this instance
//	viewer ◀─┘                        ├── Inspector.Fleet           the others, by the control service; once a second
//	                                  ├── Inspector.Look, Ahead     streams and forecast; once a minute at most
//	                                  └── doctor.Gather             findings; once a minute at most
//
// All viewers get the same frames, which are made and encoded once. Without a viewer nothing runs and no connection is
// open. A slow viewer misses frames: the page keeps only the latest of each kind. maxViewers bounds the viewers and
// maxQuestions the concurrent questions. A hidden tab closes its stream, because a browser makes six connections to a
// host and each stream holds one.
//
// The page's history is in memory, in package history. Each instance keeps its own part, and the page adds them up. The
// broker records it with and without viewers.
//
// # Access
//
// The overview shows what /status and /metrics show, to the same people. Rows have ids, keys and targets of tenants,
// and their reasons for refusals. So do findings. Both are shown without a token only if Access.OpenRows is set.
// Headers and bodies also need Access.Bodies. A viewer requests them message by message, and the broker logs each
// answer with the name of the token. Actions need Access.Actions and a token.
//
//   - The token travels in the header Authorization. The page keeps it in the tab. There is no cookie, so another web
//     page cannot act with it, and no URL has it, so no proxy logs it.
//   - The Host of a request has to be an address, localhost, or a name in Access.Hosts. Otherwise a page under
//     a stranger's name that resolves to 127.0.0.1 could read this page.
//   - A request that changes something is JSON, and comes from the page's own origin.
//   - Only the embedded scripts run, and none of them makes HTML from text. The browser enforces this, by the
//     Content-Security-Policy with Trusted Types.
//
// # Plan, then act
//
// A viewer plans an action first. The plan counts its objects, and fixes them: the generation of a timer, the last
// sequence of a listing, the time before which letters died. It is sealed with the viewer's token, and act accepts
// nothing else. So the action changes the counted objects, or fewer. Any instance can carry out the plan of another.
//
// The actions are those of the command line: package service for timers, package inspect for letters and pauses.
//
// # Vendored
//
// uPlot 1.6.32 draws the charts. Preact 11.2.0 draws everything else, without a build step: a view is a function that
// returns its tree, and Preact applies the differences. So times advance, rows are updated, sorted and selected in
// place, and the focus stays where it is. Both files are unchanged; a test checks their digests.
package page
