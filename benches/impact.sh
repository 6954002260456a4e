#!/usr/bin/env bash
# What the faults that flagaudit finds cost on this machine: nginx at -O0 and -O2, as a reverse proxy with and without kept
# connections to the upstream, and compressing static files anew against gzip_static. A report, not a gate.
#   usage: benches/impact.sh CORPUS      SECONDS_EACH=5 and ROUNDS=3 by default; CORPUS is what scripts/corpus.sh makes
# Needs wrk (apt-get install wrk). All on loopback, one worker, 32 connections at most. Prints Markdown.
set -euo pipefail
corpus=$(cd "${1:?usage: benches/impact.sh CORPUS}" && pwd)
command -v wrk >/dev/null || { echo "wrk is not installed: apt-get install wrk" >&2; exit 2; }
work=$(mktemp -d)
trap 'for pid in "$work"/*.pid; do [ -s "$pid" ] && kill "$(cat "$pid")" 2>/dev/null; done; sleep 0.3; rm -rf "$work"' EXIT
chmod 755 "$work"

python3 - "$corpus" "$work" "${SECONDS_EACH:-5}" "${ROUNDS:-3}" <<'PY'
import datetime, os, pathlib, platform, random, re, socket, statistics, subprocess, sys, time
corpus, work, seconds, rounds = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])

def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]

backend, front = free_port(), free_port()
html = work / "html"
html.mkdir()
(work / "logs").mkdir()
# Text that compresses about as style sheets do.
random.seed(1)
words = [f".name-{n}{{margin:{n % 17}px;color:#{n * 7919 % 0xffffff:06x}}}" for n in range(400)]
style = "\n".join(random.choice(words) for _ in range(1800)).encode()
(html / "style.css").write_bytes(style)
subprocess.run(["gzip", "-9kn", str(html / "style.css")], check=True)
(html / "small").write_bytes(b"x" * 1024)

HEAD = """worker_processes 1; error_log {work}/{name}.log; pid {work}/{name}.pid; {user}
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 1000000; types {{ text/css css; }}
  client_body_temp_path {work}/t1; proxy_temp_path {work}/t2; fastcgi_temp_path {work}/t3; uwsgi_temp_path {work}/t4; scgi_temp_path {work}/t5;
"""
user = "user root;" if os.geteuid() == 0 else ""
def conf(name, body):
    path = work / f"{name}.conf"
    path.write_text(HEAD.format(work=work, name=name, user=user) + body + "}\n")
    return path

conf("backend", f"server {{ listen 127.0.0.1:{backend}; root {html}; }}")
up = f"upstream up {{ server 127.0.0.1:{backend}; %s }} server {{ listen 127.0.0.1:{front}; location / {{ proxy_pass http://up; %s }} }}"
reuse = 'proxy_http_version 1.1; proxy_set_header Connection "";'
conf("new-connections", up % ("", ""))
conf("kept-connections", up % ("keepalive 32;", reuse))
conf("gzip", f"server {{ listen 127.0.0.1:{front}; root {html}; gzip on; gzip_types text/css; gzip_comp_level 6; }}")
conf("gzip_static", f"server {{ listen 127.0.0.1:{front}; root {html}; gzip on; gzip_types text/css; gzip_static on; }}")

def start(binary, name):
    subprocess.run([binary, "-p", str(work), "-c", str(work / f"{name}.conf")], check=True)
    file = work / f"{name}.pid"
    # It goes to the background before it writes its number down.
    for _ in range(200):
        if file.exists() and file.read_text().strip():
            break
        time.sleep(0.05)
    pid = int(file.read_text())
    for _ in range(100):
        workers = subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()
        if workers:
            return pid, int(workers[0])
        time.sleep(0.05)
    sys.exit(f"{name}: no worker")

def stop(name, pid):
    os.kill(pid, 15)
    while os.path.exists(f"/proc/{pid}"):
        time.sleep(0.02)
    (work / f"{name}.pid").unlink(missing_ok=True)

def cpu(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

def load(path):
    command = ["wrk", "-t1", "-c32", f"-d{seconds}s", "-H", "Accept-Encoding: gzip", f"http://127.0.0.1:{front}/{path}"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    errors = re.search(r"Non-2xx.*|Socket errors.*", text)
    if errors:
        sys.exit(f"{path}: {errors.group()}")
    return float(re.search(r"Requests/sec:\s*([\d.]+)", text).group(1)), int(re.search(r"(\d+) requests in", text).group(1))

SCENES = [("new-connections", "small", "reverse proxy, a new connection a request"),
          ("kept-connections", "small", "reverse proxy, connections kept (`keepalive 32`)"),
          ("gzip", "style.css", "style sheet, compressed for every request (level 6)"),
          ("gzip_static", "style.css", "style sheet, `gzip_static`")]
back, _ = start(f"{corpus}/O2", "backend")
rates, costs = {}, {}
for _ in range(rounds):
    for level in ["O0", "O2"]:
        for name, path, _ in SCENES:
            pid, worker = start(f"{corpus}/{level}", name)
            before = cpu(worker)
            rate, requests = load(path)
            rates.setdefault((name, level), []).append(rate)
            costs.setdefault((name, level), []).append((cpu(worker) - before) / requests * 1e6)
            stop(name, pid)
stop("backend", back)

model = next((l.split(":", 1)[1].strip() for l in open("/proc/cpuinfo") if l.startswith("model name")), platform.machine())
busy = open("/proc/loadavg").read().split()[0]
print(f"{datetime.date.today()}, {model}, {os.cpu_count()} processors (load {busy} at the end), Linux {platform.release()}.")
print(f"nginx with one worker; `wrk -t1 -c32 -d{seconds}s` on loopback, {rounds} rounds, medians. The style sheet has {len(style):,} bytes.\n")
print("| what | requests/s at -O0 | at -O2 | processor time a request at -O0 | at -O2 | -O0 costs |")
print("|---|---|---|---|---|---|")
median = statistics.median
for name, _, title in SCENES:
    r0, r2 = (median(rates[name, level]) for level in ["O0", "O2"])
    c0, c2 = (median(costs[name, level]) for level in ["O0", "O2"])
    print(f"| {title} | {r0:,.0f} | {r2:,.0f} | {c0:.0f} µs | {c2:.0f} µs | {100 * (c0 / c2 - 1):+.0f} % |")
new, kept = (median(costs[name, "O2"]) for name in ["new-connections", "kept-connections"])
fresh, stored = (median(costs[name, "O2"]) for name in ["gzip", "gzip_static"])
print(f"\nAt -O2, a new connection for every request costs {new / kept:.1f} times the processor time in nginx of a kept one, and compressing "
      f"a file anew {fresh / stored:.1f} times that of `gzip_static`.")
PY
