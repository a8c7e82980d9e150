# SPDX-License-Identifier: Apache-2.0
# spin.rb: threads that spin, or sleep, each with one known stack, which the main thread prints when all are there (tests/system/spins.py has the format). A method
# written in C has no position of its own: its file is "-".
require "fiddle"
STARTED = []
$go = true
public

def spin
  STARTED << 1
  x = 0
  x = (x + 1) % 7 while $go
end

def plain; spin; end
def nested(n); n > 0 ? nested(n - 1) : spin; end
def each_block; [1].each { |_| spin }; end
def map_times; 1.times { [1].map { |_| spin } }; end
def sorts; [2, 1].sort { |_, _| spin }; end
def sort_key; [2, 1].sort_by { |_| spin }; end
def injected; [1, 2].inject { |_, _| spin }; end
def hashed; { 1 => 2 }.each_pair { |_, _| spin }; end

def rescued
  raise "first"
rescue StandardError
  spin
end

def ensured
  1 + 1
ensure
  spin
end

def evaluated; eval("spin"); end
def instance; Object.new.instance_eval { self.class.send(:define_method, :made) { spin }; made }; end
def sent; send(:spin); end
def called; method(:spin).call; end
def procs; proc { spin }.call; end
def lambdas; ->(_) { spin }.(1); end
def symbol; [self].each(&:spin); end

class Missing
  def method_missing(name, *); TOP.send(:spin); end
  def respond_to_missing?(*); true; end
end

def missing; Missing.new.whatever; end

class Base
  def run; TOP.send(:spin); end
end

class Derived < Base
  def run; super; end
end

def supers; Derived.new.run; end

class Compared
  include Comparable
  def <=>(_); TOP.send(:spin); end
end

def compared; Compared.new < Compared.new; end
def caught; catch(:x) { spin }; end
def looped; loop { spin }; end

def enumerated
  e = Enumerator.new { |y| spin; y << 1 }
  e.each { |_| }
end

def lazily; [1].lazy.map { |_| spin }.first; end
def fiber; Fiber.new { spin }.resume; end

# Ruby, qsort of the C library, Ruby.
def through_c
  compare = Fiddle::Closure::BlockCaller.new(Fiddle::TYPE_INT, [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP]) { |_, _| spin; 0 }
  qsort = Fiddle::Function.new(Fiddle.dlopen(nil)["qsort"], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID)
  qsort.call("abcdefgh", 2, 4, compare)
end

def sleeping
  STARTED << 1
  sleep 0.01 while $go
end

def locking
  STARTED << 1
  LOCK.synchronize { LOCK.sleep(0.01) while $go }
end

LOCK = Mutex.new
TOP = self
GETTID = Fiddle::Function.new(Fiddle.dlopen(nil)["gettid"], [], Fiddle::TYPE_INT)
SCENARIOS = %i[plain each_block map_times sorts sort_key injected hashed rescued ensured evaluated instance sent called procs lambdas symbol missing supers compared caught looped enumerated lazily fiber
               through_c sleeping locking].freeze
wanted = ARGV.empty? ? SCENARIOS + [:deep] : ARGV.map(&:to_sym)

tids = {}
threads = wanted.map do |name|
  Thread.new do
    tids[Thread.current] = GETTID.call
    name == :deep ? nested(300) : send(name)
  end
end
sleep 0.01 while STARTED.size < wanted.size
sleep 0.1
threads.zip(wanted).each do |thread, name|
  puts "T #{tids[thread]} #{name}"
  thread.backtrace_locations.each do |at|
    puts "#{at.label.tr(' ', '_')}\t#{(at.path || '-').tr(' ', '_')}\t#{at.lineno || 0}"
  end
  puts "E"
end
$stdout.flush
threads.each(&:join)
