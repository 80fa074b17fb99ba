package deliver

import "strings"

// holder is the stream that listens on a subject.
type holder struct {
	name string
	acks bool // the stream acknowledges
}

// filters finds the stream that listens on a subject. It is a node of a tree with one level for each token of the
// streams' filters. After the last call of add, a tree does not change.
type filters struct {
	children map[string]*filters // the subtree of each token
	star     *filters            // the subtree of *
	leaf     *holder             // the stream with a filter that ends at this node; nil if there is none
	tail     *holder             // the stream with a filter that ends with > after this node; nil if there is none
}

// add adds a filter of a stream.
func (f *filters) add(filter string, h *holder) {
	for more := true; more; {
		var token string
		token, filter, more = strings.Cut(filter, ".")
		switch {
		case token == ">" && !more:
			f.tail = better(f.tail, h)
			return
		case token == "*":
			if f.star == nil {
				f.star = new(filters)
			}
			f = f.star
		default:
			if f.children == nil {
				f.children = make(map[string]*filters)
			}
			if f.children[token] == nil {
				f.children[token] = new(filters)
			}
			f = f.children[token]
		}
	}
	f.leaf = better(f.leaf, h)
}

// match returns the stream that listens on a subject, or nil. If several streams listen on the subject, match prefers a
// stream that acknowledges; the server permits only one such stream. Match visits only filters whose tokens match, and
// allocates nothing.
func (f *filters) match(subject string) *holder {
	token, rest, more := strings.Cut(subject, ".")
	best := f.tail
	for _, below := range [...]*filters{f.children[token], f.star} {
		switch {
		case below == nil:
		case more:
			best = better(best, below.match(rest))
		default:
			best = better(best, below.leaf)
		}
	}
	return best
}

// better returns one of two streams, either of which may be nil: a stream that acknowledges, if one of them does.
func better(a, b *holder) *holder {
	if a == nil || b != nil && b.acks && !a.acks {
		return b
	}
	return a
}
