%% SPDX-License-Identifier: Apache-2.0
%% Erlang processes that each keep one stack, and print it as the runtime itself reports it. Arguments: the path of the native functions'
%% library without .so, and the scenarios. Each prints "T SCENARIO", then "MODULE:FUNCTION/ARITY FILE LINE" from the innermost on, then "E".
-module(beam_spin).
-behaviour(gen_server).
-export([main/1, plain/1, closure/1, comprehension/1, guarded/1, recursion/1, bif/1, nif/1, server/1, mapped/1, applied/1, dynamic/1,
	 binaries/1, receiver/1, floats/1, ended/1, moving/1, reload/1, native/1, init/1, handle_call/3, handle_cast/2]).

main([Library | Scenarios]) ->
	erlang:system_flag(backtrace_depth, 1000),
	Library =:= "none" orelse (ok = erlang:load_nif(Library, 0)),
	[start(list_to_atom(Scenario)) || Scenario <- Scenarios],
	io:format("READY~n"),
	receive never -> ok end.

start(reload) -> spawn(fun() -> reload(0) end);
start(Scenario) ->
	Pid = spawn(?MODULE, Scenario, [1]),
	timer:sleep(300),
	io:format("T ~s~n", [Scenario]),
	{current_stacktrace, Stack} = process_info(target(Pid), current_stacktrace),
	[io:format("~s:~s/~b ~s ~b~n", [M, F, A, proplists:get_value(file, Where, "-"), proplists:get_value(line, Where, 0)])
	 || {M, F, A, Where} <- Stack],
	io:format("E~n").

%% A server runs in a process of its own.
target(Pid) ->
	case process_info(Pid, dictionary) of
		{dictionary, [{server, Server}]} -> Server;
		_ -> Pid
	end.

spin(N) when N > 0 -> spin(N + 1 band 16#ffffff);
spin(N) -> N.

plain(N) -> {plain, middle(N)}.
middle(N) -> [spin(N)].

closure(N) ->
	Fun = fun(M) -> {N, spin(N + M)} end,
	{closure, call(Fun, N)}.
call(Fun, N) -> [Fun(N)].

comprehension(N) -> {comprehension, [X + spin(X + N) || X <- [1, 2, 3]]}.

guarded(N) ->
	try {guarded, inner(N)}
	catch error:never -> {N, caught}
	after put(done, N)
	end.
inner(N) ->
	case catch spin(N) of
		{'EXIT', Reason} -> {N, Reason};
		Value -> Value
	end.

recursion(N) -> {recursion, deep(500, N)}.
deep(0, N) -> {N, spin(N)};
deep(D, N) -> 1 + deep(D - 1, N).

bif(N) -> {bif, digest(binary:copy(<<"erlang">>, 2000), N)}.
digest(Bytes, N) -> _ = erlang:md5(Bytes), digest(Bytes, N).

nif(N) -> {nif, busy(N)}.
busy(N) -> _ = native(20), busy(N).
native(_) -> erlang:nif_error(not_loaded).

server(_) ->
	{ok, Pid} = gen_server:start(?MODULE, none, []),
	put(server, Pid),
	gen_server:call(Pid, go, infinity).
init(none) -> {ok, none}.
handle_call(go, _From, State) -> {reply, spin(1), State}.
handle_cast(_, State) -> {noreply, State}.

mapped(N) -> {mapped, lists:foldl(fun(X, Sum) -> Sum + spin(X) end, 0, lists:map(fun(X) -> X + N end, [1, 2, 3]))}.

applied(N) -> {applied, apply(?MODULE, hd([dynamic]), [N])}.
dynamic(N) -> [spin(N)].

%% Bit syntax and maps: code that calls C without storing the stack's top.
binaries(N) -> {binaries, binaries(<<1:16, 2:8>>, #{n => N}, N)}.
binaries(<<A:16, Rest/binary>>, Map, N) ->
	#{n := M} = Map,
	binaries(<<(A + M + 1):16, Rest/binary>>, Map#{n := (M + N) band 255}, N).

%% Is scheduled out and in at each message.
receiver(N) -> {receiver, pass(N)}.
pass(N) -> self() ! N, receive M -> pass(M + 1 band 255) end.

floats(N) -> {floats, float_loop(N / 3.0, N)}.
float_loop(X, N) when X > 0 -> float_loop(math:sin(X) + 2.0 * X / (X + 1.0), N).

%% Exceptions, over and over.
ended(N) -> {ended, throwing(N)}.
throwing(N) ->
	try thrower(N) catch throw:{thrown, M} -> ok, put(last, M) end,
	throwing(N).
thrower(N) -> [throw({thrown, N})].

%% The stack grows, shrinks and moves.
moving(N) -> {moving, again(N)}.
again(N) -> _ = length(build(600, N)), again(N).
build(0, N) -> [N];
build(D, N) -> [{D, N} | build(D - 1, N)].

%% Modules with the same name, whose functions have other names, replace each other.
reload(_) -> reload([version("odd"), version("even")], 0).
reload([{Name, Binary}, Other], N) ->
	{module, beam_version} = code:load_binary(beam_version, "beam_version", Binary),
	Pid = spawn(beam_version, Name, [1]),
	timer:sleep(7),
	exit(Pid, kill),
	code:purge(beam_version),
	reload([Other, {Name, Binary}], N + 1).
version(Kind) ->
	Lines = ["-module(beam_version).", "-export([run_" ++ Kind ++ "/1])."] ++
		["run_" ++ Kind ++ "(N) -> [leaf_" ++ Kind ++ "(N)].", "leaf_" ++ Kind ++ "(N) when N > 0 -> leaf_" ++ Kind ++ "(N + 1 band 65535); leaf_" ++ Kind ++ "(N) -> N."],
	Forms = [begin {ok, Tokens, _} = erl_scan:string(Line), {ok, Form} = erl_parse:parse_form(Tokens), Form end || Line <- Lines],
	{ok, beam_version, Binary} = compile:forms(Forms),
	{list_to_atom("run_" ++ Kind), Binary}.
