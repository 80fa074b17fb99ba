// Package owners decides which instance owns which lane. A lane has at most one owner at a time: it alone reads the lane,
// moves its messages on, and commits. Two owners would do no worse than deliver twice under one id, so ownership serves
// order and economy; no promise rests on it.
package owners
