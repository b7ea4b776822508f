# serve.sh - `vwn serve`: what programs of this machine get, and what others, broken and greedy ones do. The numbers of a harness that scores
# through it are compared in tests/torch/harness.sh.
. "$VWN_SOURCE/tests/support/lib.inc"
command -v curl > /dev/null || { echo "skipped: there is no curl" && exit 77; }

squares > text.txt
{
    small_model '' 'embed tokens { vocab = 256 }; attention { heads = 2, position = rope(base = 100) }; head lm { norm = rms_norm(eps = 1e-6) }'
    small_train 'length = 4 steps
optimizer adamw { lr = 1e-2, betas = [0.9, 0.99], eps = 1e-8, weight_decay = 0 }'
} | sed 's/context    = 16/context    = 400/' > small.vwn
expect 0 "$VWN" train small.vwn --run r -q
"$VWN" doctor | grep -q 'HTTP: libmicrohttpd' || { echo "skipped: there is no libmicrohttpd" && exit 77; }

"$VWN" serve r --port 0 --queue 20 --json > listens 2> serve.err &
server=$!
trap 'kill -9 $server 2> /dev/null' EXIT
tries=0
until [ -s listens ]; do
    sleep 0.1
    tries=$((tries + 1))
    [ $tries -lt 300 ] || { cat serve.err && fail "it does not listen" && exit 1; }
done
at=$(sed 's/.*"url":"\([^"]*\)".*/\1/' listens)
port=${at##*:}

# ask STATUS PATH CURL-ARGUMENTS...: the answer is in the file out
ask() {
    wanted=$1
    last="$2"
    path=$2
    shift 2
    status=$(curl -s -N -m 20 -o out -w '%{http_code}' "$@" "$at$path" < /dev/null)
    [ "$status" = "$wanted" ] || fail "$path $*: status $status, wanted $wanted"
}
# say STATUS JSON TEXT: a completion, whose answer has a text
say() {
    ask "$1" /v1/completions -d "$2"
    has out "$3"
}

ask 200 /health && has out '"running":0,"waiting":0,"rows":16'
ask 200 /v1/models && has out '"id":"small"'
ask 200 /tokenizer_info && has out '"eos_token":null'
ask 200 /tokenize -d '{"prompt": "line \u00e4", "add_special_tokens": false}' && has out '"tokens":[108,105,110,101,32,195,164]'
ask 200 /detokenize -d '{"tokens": [108, 105, 195, 164]}' && has out '"prompt":"liä"'

# the log-probabilities of a prompt are those of vwn eval, and the greedy text is that of vwn sample
say 200 '{"prompt": "line 1 sa that", "max_tokens": 1, "temperature": 0, "echo": true, "logprobs": 1, "model": "small", "seed": 3}' '"text_offset":[0,1,2'
sed 's/.*"token_logprobs":\[null,\([^]]*\).*/\1/' out | tr ',' '\n' | sed -n '9,13p' | awk '{ s += $1 } END { print s }' > served.txt
echo '{"context": "line 1 sa", "continuation": " that"}' > one.jsonl
expect 0 "$VWN" eval r --task one.jsonl -o one.out
sed 's/.*"logprob":\[\([^]]*\).*/\1/' one.out > scored.txt
close served.txt scored.txt 1e-4
say 200 '{"prompt": "line 1", "max_tokens": 12, "temperature": 0}' '"completion_tokens":12'
sed 's/.*"text":"\([^"]*\)".*/line 1\1/' out > greedy.txt
cp out whole
expect 0 "$VWN" sample r --prompt 'line 1' --tokens 12 --temperature 0 --json
sed 's/.*"text":"\([^"]*\)".*/line 1\1/' out > sampled.txt
[ "$(cat greedy.txt)" = "$(cat sampled.txt)" ] || fail "the greedy texts differ: $(cat greedy.txt) $(cat sampled.txt)"
# by ids, in pieces, ended before a stop; several texts, which a seed repeats
say 200 '{"prompt": [108, 105, 110, 101, 32, 49], "max_tokens": 12, "temperature": 0}' '"index":0'
[ "$(sed 's/.*"text"//; s/,"usage.*//' out)" = "$(sed 's/.*"text"//; s/,"usage.*//' whole)" ] || fail "ids give another text"
say 200 '{"prompt": "line 1", "max_tokens": 12, "temperature": 0, "stream": true, "echo": true}' 'data: [DONE]'
sed -n 's/^data: .*"text":"\([^"]*\)".*/\1/p' out | tr -d '\n' > streamed.txt
[ "$(cat streamed.txt)" = "$(cat greedy.txt)" ] || fail "the pieces are another text"
stop=$(sed 's/.*\(..\)$/\1/' greedy.txt)
say 200 "{\"prompt\": \"line 1\", \"max_tokens\": 12, \"temperature\": 0, \"stop\": [\"$stop\"]}" '"finish_reason":"stop"'
before=$(awk -v stop="$stop" '{ made = substr($0, 7); print "line 1" substr(made, 1, index(made, stop) - 1) }' greedy.txt)
[ "$(sed 's/.*"text":"\([^"]*\)".*/line 1\1/' out)" = "$before" ] || fail "the text does not end before the stop"
several='{"prompt": ["line", "square"], "n": 2, "max_tokens": 5, "seed": 7}'
say 200 "$several" '"index":3'
sed 's/.*"choices"//' out > before
say 200 "$several" '"index":3'
sed 's/.*"choices"//' out | cmp -s - before || fail "a seed gives other texts"

# who may not ask
ask 403 /health -H 'Host: evil.example'
ask 403 /health -H 'Origin: http://evil.example'
ask 403 /health -H "Origin: http://127.0.0.1.evil.example:$port"
ask 200 /health -H "Origin: http://localhost:$port"
# what is no request
say 400 '{"prompt": "a", "max_tokenz": 1}' '`max_tokenz` is not known here'
say 400 '{"prompt": "a", "max_tokens": 401}' 'do not fit into the model'
say 400 '{"prompt": [1, 256]}' 'the token 256 is not below the vocabulary of 256'
say 400 '{"prompt": ""}' 'at least one token'
say 400 '{"prompt": {"a": 1}}' '`prompt` is a text'
say 400 '{"prompt": "a", "temperature": -1}' '`temperature` is a number from 0 to 100'
say 400 '{"prompt": "a", "logprobs": 9}' '`logprobs` is a whole number from 0 to 5'
say 400 '{"prompt": "a", "n": 21}' 'more than the 20 texts'
say 404 '{"prompt": "a", "model": "gpt-9"}' 'the model that is served is `small`'
say 400 '["a"]' 'a request is a JSON object'
printf '{"prompt": "\377"}' > bad
ask 400 /v1/completions --data-binary @bad && has out 'invalid UTF-8'
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "[" }' > deep
ask 400 /v1/completions --data-binary @deep && has out 'nested too deeply'
head -c 9000000 /dev/zero > huge
ask 413 /v1/completions --data-binary @huge
status=$(curl -s -m 20 -o out -w '%{http_code}' -H 'Transfer-Encoding: chunked' -H 'Expect:' --data-binary @huge "$at/tokenize")
[ "$status" != 200 ] || fail "a request without a length has no bound"
ask 404 /v2/completions
ask 405 /tokenize
# half a request stays open, and others are answered meanwhile
(printf 'POST /tokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99\r\n\r\n{"pro' && sleep 5) |
    curl -s -m 5 "telnet://127.0.0.1:$port" > half.out 2>&1 &
half=$!

# 20 texts wait and 16 run: more are refused; texts whose client is killed make room
all='{"prompt": "a", "n": 18, "max_tokens": 380, "stream": true, "temperature": 0.5}'
member() { curl -s -m 20 "$at/health" | sed "s/.*\"$1\":\([0-9]*\).*/\1/"; }
: > clients
for i in 1 2; do
    curl -s -m 60 -N -d "$all" "$at/v1/completions" > "long.$i" &
    echo $! >> clients
    tries=0
    until [ "$(member running)" = 16 ] || [ $tries -gt 100 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
done
say 429 '{"prompt": "a", "n": 20, "max_tokens": 1}' 'too many texts wait'
while read -r client; do kill -9 "$client"; done < clients
tries=0
until [ "$(member running)" = 0 ] || [ $tries -gt 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
[ "$(member running)" = 0 ] || fail "texts of killed clients are computed on"
say 200 '{"prompt": "a", "max_tokens": 1}' '"finish_reason":"length"'

# several texts cost about as many runs as one
before=$(member runs)
say 200 '{"prompt": "a", "n": 16, "max_tokens": 50, "temperature": 1, "seed": 5}' '"completion_tokens":800'
[ $(($(member runs) - before)) -le 60 ] || fail "16 texts take $(($(member runs) - before)) runs"

kill "$half" 2> /dev/null
kill -TERM $server
wait $server
[ $? -eq 0 ] || fail "it does not end well: $(cat serve.err)"
trap - EXIT
expect 5 "$VWN" serve none --port 0
expect 2 "$VWN" serve r --port 70000
finish
