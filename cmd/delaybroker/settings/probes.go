package settings

import "net"

// Probes is the URL at which a broker with these settings answers probes, as its own host reaches it. It is empty where
// HTTP is off, and where the system chooses the port.
func (c Config) Probes() string {
	if _, port, err := net.SplitHostPort(c.HTTPAddr); err != nil || port == "0" {
		return ""
	}
	return probesAt(c.HTTPAddr)
}

// ReadProbes reads only DELAY_HTTP_ADDR: a question to the probes needs no other setting.
func ReadProbes() (url string, err error) {
	s := readSettings()
	var p problems
	if s.HTTPAddr == "off" {
		p.refuse("DELAY_HTTP_ADDR", s.HTTPAddr, "there is nobody to ask")
	} else {
		p.address("DELAY_HTTP_ADDR", s.HTTPAddr, "127.0.0.1:8422 or :8422")
	}
	return probesAt(s.HTTPAddr), p.err()
}

// PageAt returns the URL of the page of a broker with this listen address, as its own host reaches it. A terminal makes
// it a link. Without HTTP it is "off".
func PageAt(listen string) string {
	if listen == "off" {
		return listen
	}
	return probesAt(listen) + "/"
}

func probesAt(listen string) string { return "http://" + dialable(listen) }

// serverOfServe is the URL of the server that serve embeds, when it has the same settings.
func serverOfServe(listen string) string { return "nats://" + dialable(listen) }

// dialable turns an address to listen on into one of the same program to connect to: ":8422" and "0.0.0.0:8422" are
// 127.0.0.1:8422.
func dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
