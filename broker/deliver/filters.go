package deliver

import "strings"

// listener is the stream that listens on a subject.
type listener struct {
	name string
	acks bool // the stream acknowledges: its configuration lacks no_ack
}

// filters finds the stream that listens on a subject. It is the root, or another node, of a tree of filters. A filter
// is a subject of a stream's configuration, possibly with wildcards.
type filters struct {
	children map[string]*filters // the subtree of each token
	star     *filters            // the subtree of *
	leaf     *listener           // the stream with a filter that ends at this node, or nil
	tail     *listener           // the stream with a filter that ends with > directly after this node, or nil
}

func (f *filters) add(filter string, ln *listener) {
	for more := true; more; {
		var token string
		token, filter, more = strings.Cut(filter, ".")
		switch {
		case token == ">" && !more:
			f.tail = preferredListener(f.tail, ln)
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
	f.leaf = preferredListener(f.leaf, ln)
}

// match returns the stream that listens on a subject, or nil. If several streams listen on the subject, match prefers a
// stream that acknowledges. Match visits only nodes whose tokens match, and allocates nothing.
func (f *filters) match(subject string) *listener {
	token, rest, more := strings.Cut(subject, ".")
	best := f.tail
	for _, child := range [...]*filters{f.children[token], f.star} {
		switch {
		case child == nil:
		case more:
			best = preferredListener(best, child.match(rest))
		default:
			best = preferredListener(best, child.leaf)
		}
	}
	return best
}

// preferredListener returns a, or b if a is nil or if only b acknowledges. Each of them may be nil.
func preferredListener(a, b *listener) *listener {
	if a == nil || b != nil && b.acks && !a.acks {
		return b
	}
	return a
}
