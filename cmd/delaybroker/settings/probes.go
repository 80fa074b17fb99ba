package settings

import "net"

// ProbeURL returns the URL for probes of a broker with these settings, on its own host. It is empty if HTTP is off, and
// if the system chooses the port.
func (c Config) ProbeURL() string {
	if _, port, err := net.SplitHostPort(c.HTTPAddr); err != nil || port == "0" {
		return ""
	}
	return probeURL(c.HTTPAddr)
}

// ReadProbeURL reads only DELAY_HTTP_ADDR: a request to the probes needs no other setting.
func ReadProbeURL() (url string, err error) {
	s := readSettings()
	var p problems
	if s.HTTPAddr == "off" {
		p.refuse("DELAY_HTTP_ADDR", s.HTTPAddr, "HTTP is off, so there are no probes")
	} else {
		p.address("DELAY_HTTP_ADDR", s.HTTPAddr, "127.0.0.1:8422 or :8422")
	}
	return probeURL(s.HTTPAddr), p.err()
}

// PageURL returns the URL of the page of a broker with this listen address, on its own host. It is "off" without HTTP.
// Terminals make the URL a link.
func PageURL(listen string) string {
	if listen == "off" {
		return listen
	}
	return probeURL(listen) + "/"
}

func probeURL(listen string) string { return "http://" + dialable(listen) }

// embeddedURL returns the URL of the server that serve embeds with the same settings.
func embeddedURL(listen string) string { return "nats://" + dialable(listen) }

// dialable converts a listen address to one to connect to: ":8422" and "0.0.0.0:8422" become 127.0.0.1:8422.
func dialable(listen string) string {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return listen
	}
	if host == "" || net.ParseIP(host).IsUnspecified() {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}
